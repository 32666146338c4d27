"""What pages show: values made of rows and records, ready for a template. Pure.

Not here: who asks, and where rows come from (beside, in pages), templates (beside).
"""
