"""What a worker measures of the policy in force; telemetry.py has the rest."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge
from ticketgate.codecs.records.decision import PolicyRef


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
        self._reloads = Counter("ticketgate_policy_reloads", "Changed policies taken over", registry=registry)
        self._reload_failures = Counter(
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
