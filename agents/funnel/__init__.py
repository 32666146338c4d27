"""The funnel: a model proposes a call, gates judge it, and an effect port carries out what passed them all.

Here: `judge` takes one proposal through the gates; `catalogue` says what may be proposed, `repair` what may be mended.
`gates` has the order, `lookups` the sources of evidence, `file` the funnel file. The page beside this file says what
stands. Not here: carrying out (`effects`), cases and profiles for people (`workbench.funnel`).
"""
