"""Reaching Kafka: connections, what a broker says, topics, reading and sending for people and commands.

Here: aiokafka's arguments, why a broker refuses, what it allows, records as JSON lines, one attempt a request, and in
`internals` the private names of aiokafka.
Not here: the delivery protocol, which alone writes in transactions (`lane`).
"""
