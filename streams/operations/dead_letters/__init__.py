"""Dead letters: found, made ready to be sent again, and batches given up that nobody can read.

Here: which may go to their input again, and why others are held back.
Not here: what a dead letter says (`lane.taking.dead_letters`), how a lane passes over a batch (`lane.taking.passing`).
"""
