"""What operators do to a deployment from outside: account, rebuild, replay, settle by hand.

Here: audits, claims and ledger rebuilt from the outputs, offsets set back, open effects; nothing prints.
Not here: flags and tables (`cli`), what a worker does by itself (`lane`, `roles`).
"""
