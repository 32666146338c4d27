"""Apache Kafka, Tansu, Valkey and an example bank as child processes on 127.0.0.1, without Docker.

Here: for the demo, the tests and `make kafka`: started, watched until they answer, ended with their starter.
Not here: anything that a worker needs; no other room but `demo` imports this one.
"""
