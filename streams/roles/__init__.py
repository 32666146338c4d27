"""What differs by role: what a lane does with tickets, with proposals, with dispatched effects.

Here: `decide`, `propose` and `effects`, and what two of them share: takers, evidence, the records of cases.
Not here: how a batch is claimed and committed (`lane`), nor the judging itself, which is pure (ticketgate.agents).
"""
