"""The funnel: a model proposes a call, gates judge it, and an effect port carries out what passed them all.

`process.process` takes one proposal through it; `catalogue` says what may be proposed, `gates` in which order it is
judged, `repair` what may be mended. The page beside this file says what stands. Importing this package loads nothing.
"""
