"""Which texts share an inference: those that are near in length, so that little is padding, and enough of them, so that
an inference is worth its price.

Promise: of all ways to part the texts, sorted by length, the one that costs least, where an inference costs its padded
tokens and CALL_TOKENS beside them; where MAX_PADDED_TOKENS forbids that one, one that costs hardly more. Pure.
"""

import itertools
from collections import deque
from collections.abc import Sequence

# One batch's activations grow with its padded tokens, not with its rows: 32 long tickets would take ten
# times the memory of 32 short ones. 2,048 keep attention below about 25 MB a layer.
MAX_PADDED_TOKENS = 2048

# What an inference costs besides its tokens, in tokens: measured with the shipped model, where 8 to 16 are alike and 64
# is 4 % dearer. tests/bench/README.md has the figures.
CALL_TOKENS = 12


def even_batches(lengths: Sequence[int]) -> list[list[int]]:
    """Places of texts that go into one batch together, short ones first.

    A text longer than MAX_PADDED_TOKENS is a batch of its own. In a batch no length is more than CALL_TOKENS below the
    longest: alone such a text would cost less.
    """
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    sizes = [lengths[place] for place in order]
    # By how many of the shortest texts: the least that they cost, and where their last batch begins.
    least, begins = [0], [0]
    # Where the texts of a length begin. A batch begins there, or as far back as one may.
    steps: deque[int] = deque()
    for end, longest in enumerate(sizes, start=1):
        if end == 1 or longest > sizes[end - 2]:
            steps.append(end - 1)
        while longest - sizes[steps[0]] > CALL_TOKENS:
            steps.popleft()
        floor = max(steps[0], min(end - 1, end - MAX_PADDED_TOKENS // longest))
        while len(steps) > 1 and steps[1] <= floor:
            steps.popleft()
        cost, begin = min(
            (least[begin] + longest * (end - begin), begin)
            for begin in (floor, *itertools.islice(steps, 1, None))
        )
        least.append(cost + CALL_TOKENS)
        begins.append(begin)
    batches: list[list[int]] = []
    end = len(order)
    while end:
        batches.append(order[begins[end] : end])
        end = begins[end]
    return batches[::-1]
