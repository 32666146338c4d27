"""Python's collector of garbage, set up for a worker.

What a start loads (Faust, pydantic's schemas, a policy) is some 300,000 objects that nothing will let go of; the
collector would look through all of them again and again. And a batch of 64 tickets is some 10,000 objects that live
until it is committed and then go by themselves: by its own threshold of 700 the collector looked for garbage among them
a dozen times a batch, found none, and took a tenth of the processor's time for it.
"""

from __future__ import annotations

import gc
from typing import Final

# Of objects made and not let go of: what a few batches of 256 are. Garbage in cycles is kept for so long, some MB.
THRESHOLD: Final = 50_000


def set_up_collector() -> None:
    """From now on the collector looks only at what is made from now on, and seldom. To be called once, when the start
    is over."""
    # What is garbage already would be kept with the rest.
    gc.collect()
    gc.freeze()
    gc.set_threshold(THRESHOLD, *gc.get_threshold()[1:])
