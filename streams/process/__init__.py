"""One worker process: the Faust app, its parts in their order, the checks before it, the policy's reload.

Here: `app`, the only room that knows Faust, and `runner`, which opens and closes everything else.
Not here: what a lane or a role does; those are given their parts from here.
"""
