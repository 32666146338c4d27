"""What a console keeps between two requests: the view it reads, the policy, the presses of five seconds, notes, jobs.

Not here: what a page shows of it (`console.pages`), who is signed in (`console.door`), composing and sending
(`operations.review`).
"""
