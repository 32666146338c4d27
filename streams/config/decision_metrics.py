"""What a worker counts of decisions: statuses, rules, answers; and of the policy that they are made by."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Gauge
from prometheus_client import Counter as CounterMetric
from ticketgate.agents.deciding.decide import Decision
from ticketgate.agents.policy.atoms import Truth
from ticketgate.codecs.records.decision import PolicyRef
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


class PolicyMetrics:
    """The metrics of policies, in a process' registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._info = Gauge(
            "ticketgate_policy_info", "The policy in force", ["name", "version", "hash"], registry=registry
        )
        self._kept = Gauge(
            "ticketgate_policy_kept",
            "1 if the policy in force lies under its hash on the topic of policies",
            registry=registry,
        )
        self._reloads = CounterMetric(
            "ticketgate_policy_reloads", "Changed policies taken over", registry=registry
        )
        self._reload_failures = CounterMetric(
            "ticketgate_policy_reload_failures",
            "Changes of the policy file that were not taken over, for it is no policy",
            registry=registry,
        )

    def in_force(self, policy: PolicyRef) -> None:
        """The policy in force from now on."""
        self._info.clear()
        self._info.labels(policy.name, policy.version, policy.hash).set(1)

    def kept(self, is_kept: bool) -> None:
        """Whether the policy in force can be shown again by its hash."""
        self._kept.set(is_kept)

    def reloaded(self) -> None:
        """Count a policy that was taken over."""
        self._reloads.inc()

    def reload_failed(self) -> None:
        """Count a change of the policy file that cannot be used."""
        self._reload_failures.inc()
