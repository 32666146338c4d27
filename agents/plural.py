"""How many there are of something, as people read it."""


def counted(count: int, noun: str) -> str:
    """`1 case`, `0 cases`, `1,000 dead letters`. noun: in the singular, and one that takes an s."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
