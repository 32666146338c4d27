"""Fuzzing: what reads a stranger's bytes, a kept corpus for each reader, and generated inputs made of it.

`make fuzz` lets a coverage-guided fuzzer loose on each reader; `make test` replays the corpus and some thousand inputs
made of it, and `make chaos` 100,000.
"""
