"""`ticketgate doctor`: what a deployment needs, looked at one by one, each with its remedy.

Here: looking, on connections that are closed again. Not here: changing anything; no topic is made, no name is bound.
"""
