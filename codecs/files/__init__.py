"""Files that people write, read in one way: bytes to a limit, UTF-8, then TOML, JSON or lines of JSON.

Each reader raises `FileFault`, which says where, what and the way out. Beside them: files that a program writes for
itself (`kept`). Not here: what a policy, a catalogue or a case means, which is ticketgate.agents' to say.
"""
