"""Runs all checks. Findings are sorted by file and line, without suppressed ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from eastgate.authority.authority import Authority
from eastgate.authority.config import LintIgnore
from eastgate.authority.questions import Question
from eastgate.authority.reading import Manifests
from eastgate.basics.collection import no_collection
from eastgate.cluster.unread import diagnose_unread
from eastgate.dialects.linting import Finding, Group, GroupDecider
from eastgate.ir import Chain, Layer, Predicate, Request
from eastgate.ir.symbolic.witnesses import GaveUp, witness
from eastgate.reports.lint.chains import find_shadowed_rules
from eastgate.reports.lint.inventory import PolicyInventory, own_checks
from eastgate.reports.lint.layers import find_closed_points, find_disagreements, find_unknown_callers, find_unprotected
from eastgate.reports.lint.readings import find_audit_changes, find_reading_differences
from eastgate.reports.lint.rules import find_impossible_rules, find_unexposed_ports
from eastgate.reports.lint.samples import can_allow, chains_for, sources
from eastgate.reports.lint.solving import is_possible
from eastgate.reports.lint.suppression import drop_suppressed
from eastgate.reports.lint.targets import find_empty_targets, find_unenforced
from eastgate.settings import Settings

# The checks for policies of all dialects, in one table. The checks of one dialect are in its `lint.py`.


Check: TypeAlias = Callable[[PolicyInventory], Iterable[Finding]]

CHECKS: tuple[Check, ...] = (
    find_empty_targets,  # EG6001, EG6002, EG6007: targets that do not exist, and labels that look misspelt
    find_unenforced,  # EG6008: pods of a cluster without a proxy that would enforce
    find_unknown_callers,  # EG6004 to EG6007: accounts, namespaces and trust domains that do not exist
    find_impossible_rules,  # EG6020, EG6021: rules that no request matches in any place
    find_unexposed_ports,  # EG6003: ports that no selected workload declares
    find_shadowed_rules,  # EG6022 to EG6024: rules that others decide before, or cover
    find_closed_points,  # EG6040: points that no caller can reach
    find_disagreements,  # EG6041: requests that one dialect allows and another denies
    find_reading_differences,  # requests that two readings decide differently, with a code for each reading
    find_audit_changes,  # EG6046: effects of audited policies
    find_unprotected,  # EG6060: routes without a policy, if others have one
)


# The services of the engine for the checks of dialects.


class CheckContext(PolicyInventory):
    """The inventory of the general checks, with the methods of `Context`."""

    def under(self, group: Group, settings: Settings) -> GroupDecider:
        """Assemble a group under other settings."""
        program = self.assembled(group, group.attached, settings)
        return GroupDecider(program.layers, lambda request: bool(program.decide(request) & 1))

    def is_possible(self, predicate: Predicate) -> bool:
        """Return whether any request meets a predicate; True if the search gives up."""
        return is_possible(predicate)

    def witness(self, wanted: Predicate, avoided: Sequence[Predicate]) -> Request | None:
        """Find a request that meets a predicate and none of the others; None if none is found."""
        try:
            return witness(wanted, avoided)
        except GaveUp:
            return None

    def chains_for(self, layer: Layer, request: Request) -> list[Chain]:
        """Return the chains that a layer may choose for a partly known request."""
        return chains_for(layer, request)

    def can_allow(self, layer: Layer, request: Request) -> bool:
        """Return whether a layer may allow a partly known request."""
        return can_allow(layer, request)

    def requests(self, question: Question) -> list[Request]:
        """Return every request that a question may mean."""
        return self.authority.requests(question)

    def sources(self, group: Group) -> list[str]:
        """Return callers that are likely to get different verdicts, as sources of questions."""
        return sources(group, self)


def lint(
    authority: Authority,
    manifests: Manifests | None = None,
    source: Sequence[str] = (),
    ignores: Sequence[LintIgnore] = (),
) -> list[Finding]:
    """Return all findings, sorted by file and line.

    With `manifests`, the diagnostics of reading are taken from them, otherwise from the authority. `source` are the
    arguments with which the example commands read the same manifests. `ignores` are those of the project's
    eastgate.yaml.
    """
    context = CheckContext(authority, source)
    with no_collection():
        distinct = dict.fromkeys(drop_suppressed(_findings(context, manifests), context, ignores))
    return sorted(distinct, key=lambda finding: finding.sort_key)


def _findings(context: CheckContext, manifests: Manifests | None) -> Iterator[Finding]:
    authority = context.authority
    warnings = authority.warnings if manifests is None else manifests.reporter.diagnostics
    yield from (Finding.of(warning, context.subjects_at(warning.span)) for warning in warnings)
    unread = diagnose_unread(authority.unread_objects.objects, authority.unread)
    yield from (Finding.of(diagnostic) for diagnostic in unread)
    checks: list[Callable[[CheckContext], Iterable[Finding]]] = [*CHECKS, *own_checks()]
    for check in checks:
        yield from (_name_backends(finding, context) for finding in check(context))


def _name_backends(finding: Finding, inventory: PolicyInventory) -> Finding:
    """Name Backends as they are declared. Policies treat Backends of all kinds as one."""
    if not any(subject.startswith("Backend/") for subject in finding.subjects):
        return finding
    kinds = {f"Backend/{key}": f"{backend.kind}/{key}" for key, backend in inventory.world.backends.items()}
    return replace(finding, subjects=tuple(kinds.get(subject, subject) for subject in finding.subjects))
