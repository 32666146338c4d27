"""A network that fails: proxies before Kafka and Redis which hold, cut, repeat, delay and drop single requests.

    with KafkaProxy(broker) as proxy:            # before broker.start(): clients of proxy.bootstrap stay behind it
        broker.start()
        proxy.rule = nth("EndTxn", 1, held())    # what happens to a request: a function from Request to Fault
        ...                                      # the client's request is taken, and its connection cut
        (held,) = proxy.wait_for_held(1)
        held.deliver()                           # now the broker gets it, on a connection of its own; its answer

    with RedisProxy(valkey.port) as proxy:       # proxy.url is what TICKETGATE_REDIS takes
        proxy.rule = nth("EVALSHA", 3, reply_lost())
        proxy.silence()                          # the whole network: nothing passes, nobody is told; heal() ends it
        proxy.refuse()                           # or every connection is cut, and none let in

`faults.py` has the faults and the rules, `proxy.py` the machinery; `kafka_proxy.py` and `redis_proxy.py` know where a
request begins and ends. A proxy runs in a thread of its own, so that tests of either kind can use it; rules are called
there, and should be quick. Everything is bound to 127.0.0.1.
"""
