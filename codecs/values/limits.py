"""The limits of what is read, in one place."""

from __future__ import annotations

# A ticket is a person's text with some facts. Four times this fits a broker's default record of 1 MiB, so a
# decision that carries the ticket, the answers and the reasons still fits too.
DEFAULT_MAX_BYTES = 256 * 1024

# jiter gives up at 200 and orjson at 254 levels, each with its own error; well below both, every reader and
# writer on the way behaves alike, and no consumer's stack is at risk.
MAX_DEPTH = 64

# What we write around it is nested deeper: a ticket in its record, the record in a line of `consume`, effects with
# their arguments. Whatever we write we must read again; still well below what jiter and orjson bear.
MAX_OWN_DEPTH = 96

# Objects and arrays in one document: an empty one of 2 bytes takes 80 in memory, and a small one of 8 over 200. People
# write one in a hundred bytes; short documents may have as many as they like.
MAX_CONTAINERS_ANYWAY = 4096
BYTES_A_CONTAINER = 64

# What 64 bits hold, signed or unsigned: what orjson and most consumers' integer types can carry.
MIN_INTEGER = -(2**63)
MAX_INTEGER = 2**64 - 1

# Digits that a number may have before its point. jiter takes no more, and says so as "out of range" even if an
# exponent brings the value back; so it is a rule here, and not a surprise.
MAX_WHOLE_DIGITS = 4300

# A file is its owner's own: the limit that protects from a stranger's ticket is not meant for it.
MAX_FILE_BYTES = 64 * 2**20
