"""What a process is told, and what it tells: settings, metrics and readiness.

Here: every setting with its one default, what each role reads and writes, the words of /readyz and /metrics.
Not here: anything that opens a connection (`kafka`, ticketgate.store), or that checks what a broker says (`lane`).
"""
