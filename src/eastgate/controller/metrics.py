"""The metrics of a replica: counters of events, and values that are computed for each scrape.

Series with the name of a policy exist only as long as the policy. No other name that a user can choose (a pod, a host,
a path) is a label.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram

from eastgate.authority.auditing import Would
from eastgate.control.access_log import Observation, rule_of, would_be
from eastgate.control.authorizer.checks import ProxyAnswer
from eastgate.control.authorizer.log import AuthorizerMetrics

_BUCKET_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_DECIDERS: Final = (
    "none-of-",
    "proxy/",
    "authorizer-without-answer",
    "authorizer",
    "unreachable",
    "handshake",
    "open",
    "cannot-be-enforced",
)
_OTHER: Final = "other"
_VERDICTS: Final = ("allow", "deny")
_LEVELS: Final = ("connection", "request", "handshake")


class ControllerMetrics:
    """The counters of events, in the registry of the replica.

    `checks` are those of the authorizer, in a separate registry, since some of its names mean something else here.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.checks = AuthorizerMetrics(check_registry := CollectorRegistry())
        self.check_registry = check_registry
        self._check_decisions = Counter(
            "eastgate_check_decisions",
            "Decisions of this authorizer, by verdict and deciding policy; without one, the kind of decider.",
            ["verdict", "policy"],
            registry=registry,
        )
        self._decisions = Counter(
            "eastgate_decisions",
            "Decisions that proxies sent, by level, verdict and deciding policy; without one, the kind of decider.",
            ["level", "verdict", "policy"],
            registry=registry,
        )
        self._audit_denied = Counter(
            "eastgate_audit_denied",
            "Allowed decisions that proxies sent, and that a policy in audit mode would have denied.",
            ["level", "policy"],
            registry=registry,
        )
        self._watch_errors = Counter(
            "eastgate_watch_errors", "Lists and watches that failed, by kind.", ["kind"], registry=registry
        )
        self._applied = self._histogram("apply_seconds", "Time to apply a batch of changes.")
        self._change_to_applied = self._histogram(
            "change_to_applied_seconds", "Time from the arrival of a change until it was applied and sent to proxies."
        )
        self._admissions = Counter(
            "eastgate_admission_requests",
            "Reviews that were answered, by webhook and result: allowed, denied, converted, or error.",
            ["webhook", "result"],
            registry=registry,
        )
        self._unproven = Counter(
            "eastgate_admission_unproven",
            "Admitted changes whose openings are not proven.",
            registry=registry,
        )
        self._admission_seconds = self._histogram("admission_seconds", "Time of a review.", "webhook")

    def _histogram(self, name: str, text: str, *labels: str) -> Histogram:
        return Histogram(f"eastgate_{name}", text, labels, buckets=_BUCKET_SECONDS, registry=self.registry)

    def failed_watch(self, kind: str) -> None:
        """Count a list or a watch that failed."""
        self._watch_errors.labels(kind).inc()

    def applied(self, seconds: float, since_arrival: float | None) -> None:
        """Observe a batch of changes."""
        self._applied.observe(seconds)
        if since_arrival is not None:
            self._change_to_applied.observe(since_arrival)

    def reviewed(self, webhook: str, result: str, seconds: float) -> None:
        """Observe a review."""
        self._admissions.labels(webhook, result).inc()
        self._admission_seconds.labels(webhook).observe(seconds)

    def admitted_unproven(self) -> None:
        """Count a change that was admitted without full proof."""
        self._unproven.inc()

    def checked(self, answer: ProxyAnswer, seconds: float, policies: Container[str]) -> None:
        """Count an answer of the authorizer. `policies` are the names of existing policies. Any thread may call it."""
        self.checks.count("grpc", answer, seconds)
        who = str(answer.why or answer.record.get("decider") or "authorizer")
        self._check_decisions.labels(_VERDICTS[not answer.allowed], decider(f"0:{who}", policies)).inc()

    def decided(self, observation: Observation, policies: Container[str]) -> None:
        """Count a decision of a proxy."""
        policy = decider(observation.decision, policies)
        self._decisions.labels(observation.level, _VERDICTS[not observation.allowed], policy).inc()
        for would in would_be(observation):
            if would.changes and would.verdict is Would.DENY:
                for audited in would.policies or (_OTHER,):
                    self._audit_denied.labels(observation.level, audited if audited in policies else _OTHER).inc()

    def forget(self, policies: Iterable[str]) -> None:
        """Remove the series of policies that are gone."""
        for policy in policies:
            for verdict in _VERDICTS:
                self._check_decisions.remove(verdict, policy)
                for level in _LEVELS:
                    self._decisions.remove(level, verdict, policy)
            for level in _LEVELS:
                self._audit_denied.remove(level, policy)


def decider(decision: str, policies: Container[str]) -> str:
    """Return the policy in the name of a verdict, if it exists; else the kind of decider."""
    policy, _ = rule_of(decision)
    if policy is not None:
        return policy if policy in policies else _OTHER
    who = decision.partition(":")[2]
    return next((known.rstrip("-/") for known in _DECIDERS if who.startswith(known)), _OTHER)
