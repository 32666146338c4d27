"""What a worker counts of decisions: statuses, rules, answers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from prometheus_client import CollectorRegistry
from prometheus_client import Counter as CounterMetric
from ticketgate.agents.deciding.decide import Decision
from ticketgate.agents.policy.atoms import Truth
from ticketgate.codecs.verdict import Status
from ticketgate.streams.config.batch_histogram import BatchHistogram

_PROBABILITY_BUCKETS = tuple(n / 10 for n in range(1, 11))


class DecisionMetrics:
    """The metrics of decisions, in the registry of a worker's others."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._decisions = CounterMetric(
            "ticketgate_decisions", "Decisions emitted", ["status"], registry=registry
        )
        self._rules = CounterMetric(
            "ticketgate_rule_evaluations",
            "Rules by what they said: held, broken, open",
            ["rule", "result"],
            registry=registry,
        )
        self._probability = BatchHistogram(
            "ticketgate_answer_probability",
            "The probability of true of each noul answer",
            "question",
            buckets=_PROBABILITY_BUCKETS,
            registry=registry,
        )
        self._truncated = CounterMetric(
            "ticketgate_truncated", "Answers given on a part of the state", ["question"], registry=registry
        )

    def count(self, status: Status, count: int = 1) -> None:
        """Count decisions of this status."""
        self._decisions.labels(status).inc(count)

    def count_all(self, decisions: Iterable[Decision]) -> None:
        """Count decisions on tickets, with their rules and answers."""
        # Summed up first: a metric's child is looked up and locked once, and not for each rule of each ticket.
        statuses, rules, truncated = Counter[Status](), Counter[tuple[str, Truth]](), Counter[str]()
        probabilities: defaultdict[str, list[float]] = defaultdict(list)
        for decision in decisions:
            statuses[decision.verdict.status] += 1
            rules.update(decision.rule_truths.items())
            truncated.update(decision.truncated)
            for question, probability in decision.probabilities.items():
                if isinstance(probability, (int, float)):
                    probabilities[question].append(probability)
        for status, count in statuses.items():
            self.count(status, count)
        for (rule, truth), count in rules.items():
            self._rules.labels(rule, "open" if truth is None else "held" if truth else "broken").inc(count)
        for question, count in truncated.items():
            self._truncated.labels(question).inc(count)
        for question, values in probabilities.items():
            self._probability.observe(question, values)
