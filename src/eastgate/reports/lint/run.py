"""Run all checks: their findings by file and line, without those that are suppressed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from eastgate.authority.authority import Authority
from eastgate.authority.config import LintIgnore
from eastgate.authority.reading import Manifests
from eastgate.basics.collection import no_collection
from eastgate.cluster.unread import diagnose_unread
from eastgate.dialects.linting import Finding
from eastgate.reports.lint.checks import CHECKS
from eastgate.reports.lint.context import CheckContext
from eastgate.reports.lint.hooks import own_checks
from eastgate.reports.lint.inventory import PolicyInventory
from eastgate.reports.lint.suppression import drop_suppressed


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
