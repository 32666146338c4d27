"""The demos: a broker, a Redis and a worker on this machine, samples through them, and where each went.

Here: what `ticketgate demo` does. Not here: its flags and tables (`cli.running`), the parts themselves (`parts`).
"""
