"""What a policy may have taken off a ticket before a model reads it: HTML, quoted replies, signatures.

Promise: the ticket itself is not touched; `clean` gives another state for the model alone, the same for the same
state on every worker, in time and memory in proportion to it. What a rule is not sure of stays.
Not here: which of them a policy wants (`policy`), and what becomes of a ticket of which nothing is left (`deciding`).
"""

from ticketgate.agents.cleaning.state import STEPS, Step, clean

__all__ = ["STEPS", "Step", "clean"]
