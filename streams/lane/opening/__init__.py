"""Whether a lane may open, and where it begins: step 2 of the protocol and all that it asks.

Here: conditions of broker, topics and Redis, whose claims store it is, whether a topic still is the same, what died
lanes left. Not here: the fence itself (`lane.transaction`), what is taken once a lane is open (`taking`).
"""
