"""Kafka and the process: everything that carries records, and everything that people run.

Rooms, each importing only those after it: `cli`, `demo`, `process`, `operations`, `roles`, `lane`, `kafka`, `config`;
`parts` stands beside. `samples` are files. Deciding is in ticketgate.agents, what Redis keeps in ticketgate.store.
`app` is the door that `faust -A ticketgate.streams.app worker` looks for; the Faust app is in `process`.
"""
