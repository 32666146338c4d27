"""What Redis knows of a lane: how far it got, ranges passed over, hangs, orders to skip.

Not here: who may write (`tokens`), who owns a key (`claims`), what the lane does with it (streams.lane).
"""
