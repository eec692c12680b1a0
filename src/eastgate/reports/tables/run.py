"""Runs tables: decides every case, and compares the decision with the expected one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from os import PathLike
from typing import TYPE_CHECKING

from eastgate.authority.authority import Authority
from eastgate.authority.decisions import Decision
from eastgate.authority.environments import Deployment, chosen, deployments
from eastgate.authority.leaving_out import leave_out
from eastgate.authority.questions import QuestionError
from eastgate.authority.reading import (
    DocumentSource,
    ManifestError,
    Manifests,
    read_documents,
    read_manifests,
    sort_reading,
)
from eastgate.authority.spelling import KnownNames
from eastgate.basics.diagnostics import Diagnostic, Reporter
from eastgate.basics.diagnostics.spans import Span
from eastgate.basics.records import brief, dataclass
from eastgate.cluster.question import Question
from eastgate.cluster.unread import Handling, describe_unconsidered
from eastgate.dialects import reads
from eastgate.reading.jwt import KnownKeys
from eastgate.reading.manifests import ANYWHERE, Bounds, Document, files_of, read_objects
from eastgate.reports.invariants import Statement, StatementFinding, prove
from eastgate.reports.invariants.report import headline
from eastgate.reports.tables.model import BadCase, Case, Coverage, Rejection, Table
from eastgate.settings import Settings

if TYPE_CHECKING:
    from eastgate.reading.repository import RepositoryOptions

_Shared = tuple[tuple[str | PathLike[str], ...], Settings, Bounds]


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one case (with a question), of one rejection, or of an invariant (with a finding)."""

    table: Table
    name: str
    span: Span
    problem: str | None
    cites: str | None = None
    decision: Decision | None = None
    seconds: float = 0.0
    finding: StatementFinding | None = None
    question: Question | None = None

    def __repr__(self) -> str:
        return brief(self, f"{'passed' if self.passed else 'failed'}: {self.name}")

    @property
    def passed(self) -> bool:
        """Return whether the result is as expected."""
        return self.problem is None


@dataclass(slots=True)
class Run:
    """The results of all tables."""

    results: list[Result] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    coverage: Coverage | None = None

    def __repr__(self) -> str:
        return brief(self, f"{self.passed} passed, {self.failed} failed")

    @property
    def passed(self) -> int:
        """Return the number of results that are as expected."""
        return sum(1 for result in self.results if result.passed)

    @property
    def failed(self) -> int:
        """Return the number of results that are not as expected. A table that cannot be read counts as one."""
        return len(self.results) - self.passed

    @property
    def unread(self) -> int:
        """Return the number of tables that cannot be read."""
        return sum(1 for result in self.results if result.table.problem is not None)


def run_tables(
    tables: Iterable[Table],
    *,
    coverage: bool = False,
    strict: bool = False,
    on_case: Callable[[int, int], None] | None = None,
    repository: RepositoryOptions | None = None,
) -> Run:
    """Run every case of every table, in each of its environments. Manifests that several tables share are read once.

    A name that is probably misspelt is a warning; with `strict`, its case fails. Policies with errors that the table
    does not expect are a failure; without `strict`, the other cases are still decided.
    """
    run = Run(coverage=Coverage() if coverage else None)
    shared: dict[_Shared, Manifests] = {}
    authorities = _Authorities()
    repositories = _Repositories(repository)
    expanded = [each for table in tables for each in repositories.expand(table, run)]
    total = sum(len(table.all_cases) for table in expanded)

    def on_result(done: int) -> None:
        if on_case is not None:
            on_case(done, total)

    for table in expanded:
        if table.problem is not None:
            run.results.append(Result(table, "it can be read", table.span, table.problem))
            continue
        manifests = _manifests(table, shared)
        run.results.extend(_rejections(table, manifests))
        if problem := _why_unusable(table, manifests, run):
            run.results.append(Result(table, "its manifests can be read", table.span, problem))
        if why := _why_stopped(manifests, problem, strict=strict):
            run.results.extend(_unanswered(table, why))
            continue
        if not table.all_cases and table._statement is None:
            continue
        try:
            keys = _keys(table)
        except ValueError as error:
            run.results.append(Result(table, "its keys can be read", table.span, str(error)))
            continue
        authority = authorities.of(table, manifests, keys)
        run.diagnostics.extend(notice for notice in authority.notices() if notice not in run.diagnostics)
        if run.coverage is not None:
            run.coverage.add_policies(authority.policies)
        if table._statement is not None:
            run.results.append(_prove(table, table._statement, authority, run, strict=strict))
        _run_cases(table, authority, run, strict=strict, on_case=on_result)
    return run


def _unanswered(table: Table, why: str) -> Iterator[Result]:
    """Yield failed results for a table that cannot be decided."""
    yield from (Result(table, case.name, case.span, why, case.cites) for case in table.all_cases)
    if table._statement is not None:
        yield _stated(table, table._statement, why)


class _Repositories:
    """The environments of manifests. Tables that share manifests share the search."""

    def __init__(self, options: RepositoryOptions | None) -> None:
        self._options = options
        self._found: dict[tuple[tuple[str | PathLike[str], ...], Bounds], tuple[list[Deployment], Reporter]] = {}

    def expand(self, table: Table, run: Run) -> list[Table]:
        """Return the table once for each environment that it names, or unchanged if it names none."""
        if not table.environments or table.problem is not None:
            return [table]
        key = table.manifests, table.bounds
        if key not in self._found:
            reporter = Reporter()
            found = deployments(table.manifests, table.bounds, (), self._options, reporter)
            self._found[key] = found, reporter
        found, reporter = self._found[key]
        run.diagnostics.extend(finding for finding in reporter if finding not in run.diagnostics)
        try:
            named = chosen(found, table.environments)
        except ManifestError as error:
            first = error.diagnostics[0]
            return [replace(table, problem=f"{first.message} ({first.help})")]
        if reporter.errors:
            return [replace(table, problem=_errors_text(reporter.errors))]
        return [replace(table, manifests=each.paths, environment=each.names[0]) for each in named]


class _Authorities:
    """Builds authorities. The last one is kept for the next table with the same manifests."""

    def __init__(self) -> None:
        self._last: tuple[Manifests, Handling, Authority] | None = None

    def of(self, table: Table, manifests: Manifests, keys: KnownKeys | None) -> Authority:
        """Return an authority on the manifests of a table."""
        last = self._last
        if keys is None and last is not None and last[0] is manifests and last[1] is table.unread:
            return last[2]
        authority = Authority(manifests, table.settings, keys, strict=False, unread=table.unread)
        self._last = (manifests, table.unread, authority) if keys is None else None
        return authority


def _run_cases(table: Table, authority: Authority, run: Run, *, strict: bool, on_case: Callable[[int], None]) -> None:
    spelling = KnownNames(authority)
    for case in table.all_cases:
        if isinstance(case, BadCase):
            problem = f"could not be decided: {case.error}"
            run.results.append(Result(table, case.name, case.span, problem, case.cites))
            on_case(len(run.results))
            continue
        result = _decide(table, case, authority, run.coverage)
        doubts = [
            doubt.diagnostic(case.part_spans.get((doubt.part, doubt.key), case.span), strict=strict)
            for doubt in spelling.doubts(case.question)
        ]
        run.diagnostics.extend(doubt for doubt in doubts if doubt not in run.diagnostics)
        if strict and doubts and result.passed:
            result = replace(result, problem=f"{doubts[0].message} ({doubts[0].help})")
        run.results.append(result)
        on_case(len(run.results))


def _manifests(table: Table, shared: dict[_Shared, Manifests]) -> Manifests:
    if table.objects is None:
        is_about_cluster = any(isinstance(path, DocumentSource) for path in table.manifests)
        key = (table.manifests, table.settings, ANYWHERE if is_about_cluster else table.bounds)
        if key not in shared:
            manifests = read_manifests(table.manifests, table.settings, bounds=table.bounds)
            shared[key] = manifests if table.manifests else Manifests(table.settings)
        return shared[key]
    files = read_documents(table.manifests, table.settings, bounds=table.bounds)
    reading = read_objects(table.objects, positioned=reads, into=files, namespace=table.settings.namespace)
    return sort_reading(reading, table.settings)


def _keys(table: Table) -> KnownKeys | None:
    """Return the keys that a table names. Raises ValueError if they are invalid, or out of bounds."""
    if not table.jwks:
        return None
    reporter = Reporter()
    files_of(table.jwks.values(), reporter, table.bounds)
    if reporter.errors:
        raise ValueError(reporter.errors[0].message)
    return KnownKeys.from_files(table.jwks)


def _why_unusable(table: Table, manifests: Manifests, run: Run) -> str | None:
    """Return the reason why a table cannot be decided: errors in its manifests that it does not expect."""
    expected = {rejection.policy for rejection in table.rejects}
    allowed = {
        id(error) for fault in manifests.faults if expected & _names_of(fault.document) for error in fault.errors
    }
    surprising = [error for error in manifests.reporter.errors if id(error) not in allowed]
    if not surprising:
        lost = [part for part in manifests.unbuilt if part.can_decide and not manifests.reporter.errors]
        return f"a part of its manifests is left out: {lost[0]}" if lost else None
    run.diagnostics.extend(error for error in surprising if error not in run.diagnostics)
    return _errors_text(surprising)


def _why_stopped(manifests: Manifests, problem: str | None, *, strict: bool) -> str | None:
    """Return the reason why no case can be decided; None if the valid part of the manifests can decide."""
    if not strict:
        leave_out(manifests)
    if manifests.unattributed_errors:
        return problem or _errors_text(manifests.unattributed_errors)
    return problem if strict else None


def _errors_text(errors: Sequence[Diagnostic]) -> str:
    where = f" ({errors[0].span})" if errors[0].span is not None else ""
    return f"its manifests have errors: {errors[0].message}{where}"


def _decide(table: Table, case: Case, authority: Authority, coverage: Coverage | None) -> Result:
    start = time.perf_counter()
    try:
        decision = authority.prepare(case.question).decide()
    except QuestionError as error:
        return Result(table, case.name, case.span, f"could not be decided: {error}", case.cites, question=case.question)
    if coverage is not None:
        coverage.add_decision(decision)
    took = time.perf_counter() - start
    problem = _why_different(case, decision) or _why_incomplete(table, decision)
    return Result(table, case.name, case.span, problem, case.cites, decision, took, question=case.question)


def _prove(table: Table, statement: Statement, authority: Authority, run: Run, *, strict: bool) -> Result:
    start = time.perf_counter()
    finding = prove(authority, statement)
    known = KnownNames(authority)
    doubts = [
        doubt.diagnostic(span, strict=strict) for question, span in statement.words for doubt in known.doubts(question)
    ]
    reported = [*finding.diagnostics, *doubts]
    run.diagnostics.extend(each for each in reported if each not in run.diagnostics)
    problem = headline(statement, finding)
    if problem is None and strict and reported:
        problem = f"{reported[0].message} ({reported[0].help})"
    return replace(_stated(table, statement, problem), finding=finding, seconds=time.perf_counter() - start)


def _stated(table: Table, statement: Statement, problem: str | None) -> Result:
    return Result(table, f"{statement.mode}", statement.span, problem, statement.cites)


def _why_incomplete(table: Table, decision: Decision) -> str | None:
    """Return the reason why an expected verdict is not enough: an unread object could change it, and no
    setting accepts that.
    """
    if decision.complete or table.unread in (Handling.WARN, Handling.IGNORE):
        return None
    left_out = "; ".join(describe_unconsidered(decision.unconsidered))
    return f"{decision.verdict} considers only what was read: {left_out} (to accept that, write unread: ignore)"


def _why_different(case: Case, decision: Decision) -> str | None:
    if decision.verdict != case.expect:
        return f"expected {case.expect}, got {decision.verdict}: {decision.reason}"
    if case.by is not None and case.by not in _names(decision):
        return f"expected it to be decided by {case.by}, was {decision.policy or 'none'}: {decision.reason}"
    if case.status is not None and case.status != decision.status:
        return f"expected status {case.status}, got {decision.status}: {decision.reason}"
    return None


def _names(decision: Decision) -> tuple[str, ...]:
    """Return the names that `by` may use for the policy that decided."""
    policy = decision.origin.policy if decision.origin is not None else None
    if policy is None:
        return ("none",)
    return str(policy), str(replace(policy, kind=f"{policy.kind}.{policy.group}"))


def _rejections(table: Table, manifests: Manifests) -> list[Result]:
    return [
        Result(
            table,
            f"{rejection.policy} is rejected",
            rejection.span,
            _why_not_rejected(rejection, manifests),
            rejection.cites,
        )
        for rejection in table.rejects
    ]


def _why_not_rejected(rejection: Rejection, manifests: Manifests) -> str | None:
    fault = next((fault for fault in manifests.faults if rejection.policy in _names_of(fault.document)), None)
    if fault is None:
        return f"expected {rejection.policy} to be rejected, it was not"
    codes = {error.code.id for error in fault.errors}
    if rejection.code is not None and rejection.code not in codes:
        with_codes = ", ".join(sorted(codes))
        return f"expected {rejection.policy} to be rejected with {rejection.code}, it was with {with_codes}"
    return None


def _names_of(document: Document) -> set[str]:
    """Return the names that `rejects` may use for an object: Kind/namespace/name, or Kind/name without a namespace."""
    name = f"{document.kind}/{document.home}/{document.name}"
    return {name} if document.namespace else {name, f"{document.kind}/{document.name}"}
