"""The door: who comes in, and what is let through to a page.

Here: `people` who may, `tokens` by what they are known, `sessions`, `proxies` that name a person, `guard` what every
request passes, `headers` of every answer, `sign_in` its pages.
Not here: what a page does with a person that is in (beside, in pages).
"""
