"""`ticketgate review`: what waits for a person, and settling it.

Not here: the view, composing and sending (ticketgate.streams.operations.review).
"""
