"""Several worker processes under one command: started, watched, started again, drained, and asked as one.

Here: how many a machine has room for, one process and its log, when it is started again, the pages of all.
Not here: what a worker does, which does not know how many there are (ticketgate.streams.process.member tells it how
to end).

Why not a library: circus brings tornado and ZeroMQ with loops of their own; supervisor is a daemon with files of
settings; cotyledon and gunicorn fork what is loaded and own the main loop; honcho restarts nothing. None of them sums
metrics, and each leaves what a worker must hear (drain, end now, the supervisor is gone) to be built beside it.
"""
