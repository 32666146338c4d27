"""The funnel file and the catalogue's file: from TOML to what a worker opens, or one line that says why not.

Here: what each may say, what contradicts, the release grid that holds automatic effects, and opening what is named.
Not here: the catalogue as the gates use it (`catalogue`).
"""
