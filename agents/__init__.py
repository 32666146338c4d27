"""The deciding: tickets and a scorer in, decisions out. No Kafka, no Redis, no clock.

`decide.decide` judges a batch, `check.check` given answers; `policy` holds the rules, `scoring` the models,
`gate` the shape of every gate. Importing this package loads none of them.
"""
