"""Run all checks: their findings by file and line, without those that are suppressed."""

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

# The checks that hold for policies of any dialect, in one table. What only one dialect has is in its `lint.py`.


Check: TypeAlias = Callable[[PolicyInventory], Iterable[Finding]]

CHECKS: tuple[Check, ...] = (
    find_empty_targets,  # EG6001, EG6002, EG6007: targets that lead to nothing, and labels that look misspelt
    find_unenforced,  # EG6008: pods of a cluster without a proxy that would enforce
    find_unknown_callers,  # EG6004 to EG6007: accounts, namespaces and trust domains that do not exist
    find_impossible_rules,  # EG6020, EG6021: rules that no request matches, wherever they apply
    find_unexposed_ports,  # EG6003: ports that no selected workload exposes
    find_shadowed_rules,  # EG6022 to EG6024: rules that others decide before, or cover
    find_closed_points,  # EG6040: points that nothing can reach
    find_disagreements,  # EG6041: what one dialect allows and another denies
    find_reading_differences,  # where two readings of a specification differ, with a code for each
    find_audit_changes,  # EG6046: what audited policies would change
    find_unprotected,  # EG6060: routes without a policy beside those that have one
)


# What a dialect's checks may ask, answered by the engine.


class CheckContext(PolicyInventory):
    """The inventory of the general checks, and answers to what a `Context` can be asked."""

    def under(self, group: Group, settings: Settings) -> GroupDecider:
        """Assemble a group under other settings."""
        program = self.assembled(group, group.attached, settings)
        return GroupDecider(program.layers, lambda request: bool(program.decide(request) & 1))

    def is_possible(self, predicate: Predicate) -> bool:
        """Return whether any request meets a predicate; True where that is too hard to find out."""
        return is_possible(predicate)

    def witness(self, wanted: Predicate, avoided: Sequence[Predicate]) -> Request | None:
        """Find a request that meets a predicate and none of the others; None where there is none, or none is found."""
        try:
            return witness(wanted, avoided)
        except GaveUp:
            return None

    def chains_for(self, layer: Layer, request: Request) -> list[Chain]:
        """Return the chains that a layer may choose for a request of which only a part is known."""
        return chains_for(layer, request)

    def can_allow(self, layer: Layer, request: Request) -> bool:
        """Return whether a layer may allow a request of which only a part is known."""
        return can_allow(layer, request)

    def requests(self, question: Question) -> list[Request]:
        """Return every request that a question stands for."""
        return self.authority.requests(question)

    def sources(self, group: Group) -> list[str]:
        """Return callers that are likely to be treated differently, as sources of questions."""
        return sources(group, self)


def lint(
    authority: Authority,
    manifests: Manifests | None = None,
    source: Sequence[str] = (),
    ignores: Sequence[LintIgnore] = (),
) -> list[Finding]:
    """Find everything that is understood and probably not meant so, sorted by file and line.

    With `manifests` what was reported while reading is taken from there, otherwise from the authority. `source` are the
    arguments by which the commands of examples read the same. `ignores` are those of the project's eastgate.yaml.
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
    """Name Backends as they are declared: those of all kinds are enforced as one."""
    if not any(subject.startswith("Backend/") for subject in finding.subjects):
        return finding
    kinds = {f"Backend/{key}": f"{backend.kind}/{key}" for key, backend in inventory.world.backends.items()}
    return replace(finding, subjects=tuple(kinds.get(subject, subject) for subject in finding.subjects))
