"""`make bench`: ticketgate beside what a user would build instead, on one machine, interleaved.

.venv/bin/python -m tests.bench.rivals            # README.md beside the other benchmarks says what it shows
"""
