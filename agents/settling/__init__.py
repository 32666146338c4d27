"""What a person decides about a record in review: who may, what follows from it, and what would be acceptable.

Here: `console_keys` who may settle, `signing` a settlement's signature, `judging` by the policy's own gates, `nearest`
suggestions. Pure: the moment comes in from outside.
Not here: the records (ticketgate.codecs), claims and topics (ticketgate.streams.roles.settle).
"""
