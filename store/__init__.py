"""What Redis keeps: claims, lanes' state, attempts at cases, the ledger of effects. Scripts, each whole or not at all.

Here: `keys` names all of it, `script` is how scripts are written and called, `tokens` say who may write, `durability`
when a write counts, `conditions` what Redis must be.
Not here: when a lane calls which (streams.lane), what a person restores from the outputs (streams.operations).
"""
