"""Commands that run something or show how it would run: demo, worker, serve, settings, topics.

Not here: the worker itself (`process`), the demo itself (`demo`).
"""
