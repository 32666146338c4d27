"""What waits for a person, kept as a view on this machine; and what a person does about it.

Here: `view` the tables, `feeding` from the topics, `desk` who reads and settles, `timeline` the whole case of a ticket.
Not here: what a lane does with a settlement (`roles.settle`), flags and tables for a terminal (`cli.review`).
"""
