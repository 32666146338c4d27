"""The web port: health, readiness, metrics, and the System One endpoint.

Here: who may ask, requests scored together, errors as JSON, the OpenAPI description.
Not here: how a request is answered by a scorer (ticketgate.agents.scoring.systemone).
"""
