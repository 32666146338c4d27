"""The deciding: tickets and a scorer in, decisions out. No Kafka, no clock; Redis and HTTP behind ports alone.

Rooms: `deciding` runs the gates of a ticket, `policy` is the language of rules, `scoring` the models, `funnel` the
gates of a proposed call, `effects` carries out what was accepted. `workbench` is for people and CI: no worker imports
it.
Importing this package loads none of them.
"""
