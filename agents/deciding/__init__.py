"""From a batch of tickets to one decision each: the gates of a ticket, in their order.

Here: `gate`, the shape of every gate and its runner; `ticket_gates`, the order; `selection`, answers to labels.
Not here: what rules mean (`policy`), who answers (`scoring`), a proposed call's gates (`funnel`).
"""
