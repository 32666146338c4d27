"""The role `settle`: what people decided about records in review, each taken once or told why not.

Here: `settle_taker` has a batch's steps, `looking` what is believed of a settlement, `settled_records` what is told.
Not here: the judging (ticketgate.agents.settling), the claims' script (ticketgate.store.settlement_claims).
"""
