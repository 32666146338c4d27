"""The demo's and the tests' parts without Docker: Apache Kafka, Tansu and Valkey as child processes on 127.0.0.1."""
