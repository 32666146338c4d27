"""One batch of a lane from records to a commit, and how large it is: steps 3 to 6 of the protocol.

Here: reading in order, decoding, claiming, pieces and their pace, records at fault set aside, records to send.
Not here: what is decided (`roles`), the transaction (`lane.transaction`), the steps' order after a fault (`lane.lane`).
"""
