"""All checks, in one place; what they find, in the order in which it is written, without what is suppressed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

from eastgate.authority import Authority, Manifests
from eastgate.collection import no_collection
from eastgate.lint.authorino import erring_conditions, sets_in_any
from eastgate.lint.callers import named_callers
from eastgate.lint.gateways import uncovered_hosts, unprotected
from eastgate.lint.ground import Ground
from eastgate.lint.layers import disagreeing_layers
from eastgate.lint.linkerd import namespace_policies, overlapping_servers, unresolved_references
from eastgate.lint.linkerd_proxies import denied_probes, invalid_annotations, without_proxy
from eastgate.lint.linkerd_routes import policies_on_dropped_routes
from eastgate.lint.lockout import locked_out
from eastgate.lint.model import Finding
from eastgate.lint.readings import audited, readings
from eastgate.lint.rules import impossible_rules, unexposed_ports
from eastgate.lint.shadowing import shadowed_rules
from eastgate.lint.suppression import without_suppressed
from eastgate.lint.targets import empty_targets, unused_server_authorizations

__all__ = ["CHECKS", "lint"]

Check: TypeAlias = Callable[[Ground], Iterable[Finding]]

CHECKS: tuple[Check, ...] = (
    empty_targets,
    unused_server_authorizations,
    named_callers,
    impossible_rules,
    unexposed_ports,
    shadowed_rules,
    locked_out,
    disagreeing_layers,
    readings,
    erring_conditions,
    sets_in_any,
    audited,
    unprotected,
    uncovered_hosts,
    overlapping_servers,
    namespace_policies,
    unresolved_references,
    denied_probes,
    invalid_annotations,
    without_proxy,
    policies_on_dropped_routes,
)


def lint(authority: Authority, manifests: Manifests | None = None) -> list[Finding]:
    """Everything that is understood and probably not meant so, sorted by file and line.

    With `manifests` what was found while reading is taken from there, otherwise from the authority.
    """
    ground = Ground(authority)
    with no_collection():
        distinct = dict.fromkeys(without_suppressed(_found(ground, manifests), ground))
    return sorted(distinct, key=lambda one: one.place)


def _found(ground: Ground, manifests: Manifests | None) -> Iterator[Finding]:
    warnings = ground.authority.warnings if manifests is None else manifests.reporter.found
    yield from (Finding.of(one, ground.subjects_at(one.span)) for one in warnings)
    for check in CHECKS:
        yield from (_as_declared(one, ground) for one in check(ground))


def _as_declared(finding: Finding, ground: Ground) -> Finding:
    """Backends of all kinds are enforced as one; a finding is about the one that is declared."""
    if not any(subject.startswith("Backend/") for subject in finding.subjects):
        return finding
    kinds = {f"Backend/{key}": f"{one.kind}/{key}" for key, one in ground.world.backends.items()}
    return replace(finding, subjects=tuple(kinds.get(subject, subject) for subject in finding.subjects))
