"""Where evidence is looked up: adapters of the look-up port. `http`, `redis` and `signed`, each loaded by itself.

Not here: what the evidence says (`evidence` of the funnel), which source a file names (`file.opening`).
"""
