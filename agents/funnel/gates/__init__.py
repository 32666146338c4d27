"""The gates of a proposed call, in their order: form, meaning, then world and authority.

`order` has them all. Execution comes after, in ticketgate.agents.effects.
"""
