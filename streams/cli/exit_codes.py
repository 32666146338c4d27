"""With which code a command ends, and what that says: the one table, which README shows too."""

from __future__ import annotations

EXIT_DONE = 0
EXIT_FAULT = 1
EXIT_BAD_INPUT = 2
EXIT_FINDINGS = 3
EXIT_UNREACHABLE = 4
EXIT_NO_OUTPUT = 5
EXIT_HUNG = 70
EXIT_OVERDUE = 75
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143

MEANINGS = {
    EXIT_DONE: "done; accepted; as expected; or who read our output has seen enough",
    EXIT_FAULT: "a fault of ours, with a traceback; `demo`: a ticket is not accounted for",
    EXIT_BAD_INPUT: "bad input, usage, setting, or a condition that is not met; one line says which",
    EXIT_FINDINGS: "a decision for review, or findings: something to look at",
    EXIT_UNREACHABLE: "Kafka, Redis or another dependency cannot be reached",
    EXIT_NO_OUTPUT: "the output could not be written, as on a full disk",
    EXIT_HUNG: "`worker`: deciding a batch hung; start it again, as a supervisor does",
    EXIT_OVERDUE: "`worker`: a step or the process itself hung; start it again",
    EXIT_INTERRUPTED: "interrupted (Ctrl-C)",
    EXIT_TERMINATED: "ended by SIGTERM; a `worker` or `serve` that SIGTERM ends ends with 0",
}
