"""Findings of `lint` in each environment of its sources, without false findings due to unread parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property, partial
from typing import TypeAlias

from eastgate.authority.authority import Authority
from eastgate.authority.config import LintIgnore, read_ignores
from eastgate.authority.examining import PolicyExamination
from eastgate.authority.leaving_out import leave_out
from eastgate.authority.reading import ManifestError, Manifests
from eastgate.basics.diagnostics import Reporter
from eastgate.basics.records import dataclass
from eastgate.cli.environments import EnvironmentSources, Notes, Task, each_environment, listed, record_all
from eastgate.cli.options import Sources
from eastgate.cli.output import fail, print_lines
from eastgate.cluster import World, WorldObject
from eastgate.cluster.unread import Unread, describe_group, group_left_out, left_out_more, list_left_out
from eastgate.cluster.unread.codes import UNREAD_POLICY
from eastgate.dialects import Policy
from eastgate.reading.manifests.custom import CustomResources
from eastgate.reading.repository import EntryKind, LeftOut
from eastgate.reports.lint import Finding
from eastgate.reports.lint import lint as find

# Findings about missing objects. The object may be in a part that could not be read, or in another environment
_ABSENCES = frozenset(
    f"EG{number}"
    for number in (
        *(5012, 5026, 6001, 6002, 6003, 6004, 6005, 6007, 6060, 6081, 6082, 6091, 6116, 6124),
        *(6135, 6136, 6140, 6218, 6301, 6302, 6307, 6315),
    )
)
_CLOSED = frozenset({"EG6040", "EG6041", "EG6046"})
_ANYWHERE = frozenset({"ConfigMap", "Namespace", "Secret", "ServiceAccount"})
"""Kinds that several environments for one cluster may each have."""

_MAX_OTHER_ENVIRONMENTS = 50  # environments of one cluster

Finder: TypeAlias = Callable[[Manifests], list[Finding]]


@dataclass(frozen=True, slots=True)
class Codes:
    """The prefixes of the selected codes, and of the ignored codes."""

    chosen: tuple[str, ...]
    dropped: tuple[str, ...]

    def fit(self, finding: Finding) -> bool:
        """Return whether a finding is shown. A finding about an unread part always is."""
        number = finding.code.id
        is_wanted = number.startswith(self.chosen or ("",)) and not number.startswith(self.dropped)
        return is_wanted or finding.code is UNREAD_POLICY


@dataclass(frozen=True, eq=False)
class Declared:
    """The objects that one environment declares, for the findings of others. `is_plain`: a plain folder."""

    objects: Sequence[WorldObject] = ()
    policies: Sequence[Policy] = ()
    custom: CustomResources = field(default_factory=CustomResources)
    is_plain: bool = False

    def may_be_beside(self, other: Declared) -> bool:
        """Return whether two environments may be applied to one cluster.

        Two environments that declare one object are alternatives, such as overlays. Two plain folders also count as
        alternatives, since some of them are.
        """
        return not (self.is_plain and other.is_plain) and self.names.isdisjoint(other.names)

    @cached_property
    def names(self) -> frozenset[object]:
        """Return the names of the objects that a cluster can have only once."""
        objects = (each.id for each in self.objects if each.id.kind not in _ANYWHERE)
        return frozenset([*objects, *(policy.ref for policy in self.policies)])


@dataclass(frozen=True, slots=True)
class EnvironmentFindings:
    """The findings in one environment.

    - `has_errors`: some of its manifests cannot be read. `is_unanswered`: none can.
    - `unbuilt`: the parts that are left out. `beside`: those of them that no finding names.
    - `absences`: a function that checks findings about missing objects again.
    """

    findings: list[Finding]
    excluded: int = 0
    has_errors: bool = False
    is_unanswered: bool = False
    unbuilt: Sequence[LeftOut] = ()
    beside: Sequence[Unread] = ()
    declared: Declared = field(default_factory=Declared)
    absences: Callable[[Iterable[Declared]], list[Finding]] | None = None


def find_all(sources: Sources, codes: Codes) -> dict[str, EnvironmentFindings]:
    """Return the findings of each environment by its name."""
    each = each_environment(sources)
    if len(each) == 1:
        return {"": _find(each[0].settled, codes)}
    found: dict[str, EnvironmentFindings] = {}

    def find_in_one(one: EnvironmentSources) -> None:
        found[one.name or ""] = _find(one.sources, codes)

    answers = record_all([Task(one.name or "", partial(find_in_one, one)) for one in each])
    Notes.of(answers).write()
    for name, answer in answers.items():
        failures = [*each[0].diagnostics, *answer.failures]
        known = found.get(name, EnvironmentFindings([], has_errors=True, is_unanswered=True))
        found[name] = replace(known, findings=[*known.findings, *map(Finding.of, failures)])
    return {name: _without_found_elsewhere(name, found) for name in answers}


def _find(sources: Sources, codes: Codes) -> EnvironmentFindings:
    settings = sources.settings()
    try:
        ignores = read_ignores(sources.config)
    except ManifestError as error:
        fail(error.diagnostics)
    manifests = sources.manifests(settings)
    if sources.verbose:
        print_lines(f"read {len(manifests.objects)} objects and {len(manifests.policies)} policies", err=True)
    errors = [Finding.of(error) for error in manifests.reporter.errors]
    leave_out(manifests)
    finder = partial(_find_in, sources=sources, ignores=ignores)
    found = finder(manifests)
    findings = sorted([*errors, *filter(codes.fit, found)], key=lambda finding: finding.sort_key)
    lost = [unread for unread in manifests.unread.objects if unread.part is not None and not unread.hosts]
    is_plain = any(environment.kind is EntryKind.FOLDER for environment in sources.found)
    missing = [finding for finding in findings if finding.code.id in _ABSENCES]
    return EnvironmentFindings(
        findings,
        manifests.excluded,
        bool(errors),
        bool(errors and manifests.stopping(strict=False)),
        manifests.unbuilt,
        lost if sources.verbose else list(_untold(lost, errors)),
        Declared(manifests.objects, manifests.policies, manifests.custom, is_plain),
        partial(_still_missing, manifests, missing, finder) if missing else None,
    )


def _find_in(manifests: Manifests, *, sources: Sources, ignores: Sequence[LintIgnore]) -> list[Finding]:
    """Return the findings about the readable manifests, without their errors; none if nothing is readable.

    An object that a left-out part may declare is not reported as missing. A workload that a policy with errors closes
    is not reported as unreachable.
    """
    if manifests.stopping(strict=False):
        return []
    authority = Authority(manifests, strict=False, unread=sources.unread)
    known = {finding.sort_key for finding in map(Finding.of, manifests.reporter.errors)}
    incomplete = any(part.can_decide for part in manifests.unbuilt)
    return [
        finding
        for finding in find(authority, manifests, sources.arguments(), ignores)
        if finding.sort_key not in known
        and not (incomplete and finding.code.id in _ABSENCES)
        and not (finding.code.id in _CLOSED and _is_about_rejected(finding, authority))
    ]


def _is_about_rejected(finding: Finding, authority: Authority) -> bool:
    """Return whether a finding is about workloads that a policy with errors closes."""
    return bool(authority.rejected_at(name for name in finding.subjects if name in authority.world.workloads))


# Missing objects


def _without_found_elsewhere(name: str, found: Mapping[str, EnvironmentFindings]) -> EnvironmentFindings:
    """Return the findings of an environment, without objects that another environment of the same cluster has."""
    here = found[name]
    if here.absences is None:
        return here
    others = [each.declared for each in found.values() if each is not here]
    others = [declared for declared in others if declared.objects and here.declared.may_be_beside(declared)]
    if not others or len(others) > _MAX_OTHER_ENVIRONMENTS:
        return here
    gone = set(here.absences(others))
    return replace(here, findings=[finding for finding in here.findings if finding not in gone])


def _still_missing(
    manifests: Manifests, missing: Sequence[Finding], find_in: Finder, others: Iterable[Declared]
) -> list[Finding]:
    """Return the missing objects that the other environments do not declare either."""
    objects: dict[object, WorldObject] = {}
    policies: dict[object, Policy] = {}
    several = list(others)
    for declared in (*several, Declared(manifests.objects, manifests.policies)):
        objects |= {each.id: each for each in declared.objects}
        policies |= {policy.ref: policy for policy in declared.policies}
    reporter = Reporter([each for each in manifests.reporter if each.code.id not in _ABSENCES])
    together = replace(
        manifests,
        objects=list(objects.values()),
        policies=list(policies.values()),
        reporter=reporter,
        custom=manifests.custom.merged(each.custom for each in several),
    )
    _, examined = PolicyExamination(manifests.settings).after(together.policies, (), (), World.of(together.objects))
    reporter.diagnostics += [finding for _, finding in examined.found]
    left = set(map(_place, find_in(together)))
    return [finding for finding in missing if _place(finding) not in left]


def _place(finding: Finding) -> tuple[object, ...]:
    return (*finding.sort_key[:4], finding.subjects[:1])


# What is left out


def _untold(lost: Iterable[Unread], errors: Sequence[Finding]) -> Iterator[Unread]:
    """Yield the parts that are left out for other reasons than the printed errors."""
    places = {error.span.location for error in errors if error.span is not None}
    messages = {error.message for error in errors}
    for unread in lost:
        if unread.part is not None and unread.part.where not in places and unread.part.why not in messages:
            yield unread


def list_lost(found: Mapping[str, EnvironmentFindings], most: int | None) -> list[str]:
    """List the parts that could not be read, each once, with the environments that lack it, unless all do."""
    if len(found) == 1:
        return [line for each in found.values() for line in list_left_out(each.beside, most)]
    names: dict[LeftOut | None, list[str]] = {}
    for name, each in found.items():
        for part in dict.fromkeys(unread.part for unread in each.beside):
            names.setdefault(part, []).append(name)
    groups = group_left_out((unread for each in found.values() for unread in each.beside), singly=most is None)

    def line(several: Iterable[Sequence[Unread]], text: str) -> str:
        lacking = {name for group in several for unread in group for name in names[unread.part]}
        ordered = [name for name in found if name in lacking]
        return text if len(ordered) == len(found) else f"{listed(ordered, len(found))}: {text}"

    shown, rest = groups[:most], groups[len(groups) if most is None else most :]
    lines = [line([group], describe_group(group)) for group in shown]
    return [*lines, line(rest, left_out_more(sum(map(len, rest))))] if rest else lines
