"""Comparison of two authorities."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from eastgate.authority.authority import Authority
from eastgate.authority.decisions import Decision
from eastgate.basics.records import dataclass
from eastgate.cluster import BackendNamed, GatewayNamed, Namespace, PodsOfService, RouteNamed, Target, World
from eastgate.cluster.unread import Unread, UnreadEffect
from eastgate.ir import ALWAYS, NEVER, labels_text
from eastgate.ir.attributes import REFUSED_PATH, SOURCE_LABELS, SOURCE_NAMESPACE
from eastgate.ir.symbolic.callers import AnonymousCell, CallerCell, CallerKind
from eastgate.ir.symbolic.partial import Facts, residual
from eastgate.reach.caller_sets import CallerSet, CallerSets
from eastgate.reach.comparison import AuthorityComparison, ComparisonDoubt, DoubtReason, VerdictDifference
from eastgate.reach.destinations import DestinationKind
from eastgate.reach.differences import compare
from eastgate.reach.endings import Ending, Spelling
from eastgate.reading.manifests.document import content_of
from eastgate.reports.conditions import condition_text
from eastgate.reports.diff.grouping import ChangeGroup, group
from eastgate.reports.diff.model import (
    SPELLINGS,
    ChangedRequests,
    DiffReport,
    InventedWorkloads,
    SideVerdict,
    Unproven,
    VerdictChange,
)
from eastgate.reports.effective.words import ANY_IDENTITY, ANYONE
from eastgate.reports.invented import Invention, has_no_workloads, invent

# Sets of callers as ids and as text. All accounts of a namespace are `sa:shop/*`, not a list.


_OTHERS = {
    CallerKind.OTHER_ACCOUNT: "accounts of other namespaces",
    CallerKind.OTHER_SPIFFE: "other SPIFFE IDs",
    CallerKind.OTHER_NAME: "other DNS names",
}


class CallerWords:
    """The ids and texts of sets of callers."""

    def __init__(self, callers: CallerSets, invented: Invention | None = None) -> None:
        self._callers = callers
        self._domain = callers.callers.domain
        accounts = invented.accounts if invented is not None else {}
        names = ((number, cell.id_in(self._domain)) for number, cell in enumerate(callers.cells))
        self._pods = {number: accounts[name] for number, name in names if name in accounts}
        self._invented: CallerSet = sum(1 << number for number in self._pods)
        self._namespaces: dict[str, CallerSet] = defaultdict(int)
        self._identities: CallerSet = 0
        for number, cell in enumerate(callers.cells):
            namespace = self._namespace(cell)
            if namespace is not None:
                self._namespaces[namespace] |= 1 << number
            if not isinstance(cell, AnonymousCell):
                self._identities |= 1 << number

    def _namespace(self, cell: CallerCell) -> str | None:
        """Return the namespace of a cell of accounts in the trust domain."""
        account = cell.account_in(self._domain)
        return (account[0] or None) if account is not None else None

    def ids(self, chosen: CallerSet) -> tuple[str, ...]:
        """Return the ids of cells that `eastgate graph` uses."""
        return tuple(cell.id_in(self._domain) for cell in self._callers.cells_in(chosen))

    def invented(self, chosen: CallerSet) -> list[str]:
        """Return the invented pods that these callers are; none if the set has other callers too."""
        if chosen & ~self._invented:
            return []
        return [key for number, key in self._pods.items() if chosen >> number & 1]

    def words(self, chosen: CallerSet) -> tuple[str, ...]:
        """Return a short text for each caller of a set.

        An invented account is one of the other accounts of its namespace.
        """
        if chosen & ~self._invented:
            chosen &= ~self._invented
            everybody, identities = self._callers.everybody & ~self._invented, self._identities & ~self._invented
        else:
            everybody, identities = self._callers.everybody, self._identities
        return self._words(chosen, everybody, identities)

    def _words(self, chosen: CallerSet, everybody: CallerSet, identities: CallerSet) -> tuple[str, ...]:
        if chosen == everybody:
            return (ANYONE,)
        if chosen == identities:
            return (ANY_IDENTITY,)
        most = chosen.bit_count() * 2 > everybody.bit_count()
        left = everybody & ~chosen
        if most and left.bit_count() <= 3 and chosen.bit_count() > 3:
            return (f"{ANYONE} but {', '.join(self._listed(left))}",)
        return tuple(self._listed(chosen))

    def _listed(self, chosen: CallerSet) -> list[str]:
        words: dict[str, None] = {}
        for cell in self._callers.cells_in(chosen):
            namespace = self._namespace(cell)
            whole = self._namespaces[namespace] & ~self._invented if namespace is not None else 0
            if namespace is not None and whole & chosen == whole and whole.bit_count() > 1:
                words[f"sa:{namespace}/*"] = None
            else:
                words[self._word(cell)] = None
        return list(words)

    def _word(self, cell: CallerCell) -> str:
        kind = cell.kind_in(self._domain)
        if kind is CallerKind.NAMESPACE:
            namespace = cell.name_in(self._domain)
            alone = (self._namespaces[namespace] & ~self._invented).bit_count() == 1
            return f"sa:{namespace}/*" if alone else f"other accounts of {namespace}"
        return _OTHERS.get(kind) or cell.id_in(self._domain)


_PROPER_PATHS = Facts({REFUSED_PATH: None})


def diff(old: Authority, new: Authority, *, unread: bool = True) -> DiffReport:
    """Compare two authorities that have the same settings.

    `unread`: objects of unread kinds prevent a proof if they may make a difference. If neither side has workloads, they
    are invented.
    """
    inventions = invent(old, new) if has_no_workloads(old, new) else []
    reports: list[DiffReport] = []
    for invented in inventions:
        with invented.imagined(old, new):
            reports.append(report_of(compare(old, new), unread=unread, invented=invented))
    return _together(reports, inventions, old, new) if reports else report_of(compare(old, new), unread=unread)


def _together(
    reports: Sequence[DiffReport], inventions: Sequence[Invention], old: Authority, new: Authority
) -> DiffReport:
    """Merge the results for workloads that cannot exist together."""
    changes = {repr(each.to_json()): each for report in reports for each in report.changes}
    unproven = {repr(each.to_json()): each for report in reports for each in report.unproven}
    if not all(each.is_all for each in inventions):
        doubt = Unproven(DoubtReason.TOO_MANY, "workloads that several policies select")
        unproven[repr(doubt)] = doubt
    for name in _without_target(old, new, reports[0].changed_policies):
        doubt = Unproven(DoubtReason.NO_TARGET, name)
        unproven[repr(doubt)] = doubt
    names = dict.fromkeys(each.kind(key) for each in inventions for key in each.pods)
    objects = [one for each in inventions for one in each.to_json()]
    return replace(
        reports[0],
        changes=tuple(sorted(changes.values(), key=lambda change: not change.is_wider)),
        unproven=tuple(unproven.values()),
        common=reports[0].common - len(inventions[0].pods) + len(names),
        invented=InventedWorkloads(
            tuple(names), tuple(inventions[0].ports.items()), tuple({repr(one): one for one in objects}.values())
        ),
    )


def _without_target(old: Authority, new: Authority, changed: Collection[str]) -> Iterator[str]:
    """Yield the changed policies whose targets do not exist on either side."""
    found: set[str] = set()
    for authority in (old, new):
        for policy in authority.policies:
            there = [_is_there(target, authority.world) for target in policy.targets]
            if str(policy.ref) in changed and there and not any(there):
                found.add(str(policy.ref))
    yield from sorted(found)


def _is_there(target: Target, world: World) -> bool:
    match target:
        case PodsOfService(namespace, name):
            return f"{namespace}/{name}" in world.services
        case GatewayNamed(namespace, name):
            return f"{namespace}/{name}" in world.gateways
        case BackendNamed(namespace, name):
            return f"{namespace}/{name}" in world.backends
        case RouteNamed(namespace, name, kind):
            return f"{kind}/{namespace}/{name}" in world.routes
        case _:
            return True  # pods of every kind are invented


def report_of(comparison: AuthorityComparison, *, unread: bool = True, invented: Invention | None = None) -> DiffReport:
    """Return a comparison for output."""
    words = CallerWords(comparison.callers, invented)
    namer = _Namer(words, invented)
    differences = [each for each in comparison.differences if not namer.is_beside(each)]
    doubtful = [doubt.difference for doubt in comparison.doubts if doubt.difference is not None]
    shown_subjects = {_subject(each) for each in (*differences, *doubtful) if not _is_refused(each)}
    changes = [_change(each, namer) for each in group(_without_refused(differences, shown_subjects))]
    unproven = [*_unproven(comparison, namer, shown_subjects)]
    if unread:
        unproven += [Unproven(DoubtReason.UNREAD, name) for name in _unread(comparison)]
    unproven += [Unproven(DoubtReason.LEFT_OUT, part) for part in _left_out(comparison)]
    pairing = comparison.pairing
    return DiffReport(
        tuple(changes),
        tuple(unproven),
        pairing.added,
        pairing.removed,
        pairing.common,
        tuple(sorted(map(str, pairing.changed))),
    )


_Subject = tuple[DestinationKind, tuple[str, ...], bool]


def _subject(difference: VerdictDifference) -> _Subject:
    return difference.pair.kind, difference.pair.members, difference.new.allowed


def _is_refused(difference: VerdictDifference) -> bool:
    """Return whether a difference covers only paths that every proxy refuses."""
    return residual(difference.when, _PROPER_PATHS) == NEVER


def _without_refused(
    differences: Iterable[VerdictDifference], shown_subjects: Collection[_Subject]
) -> list[VerdictDifference]:
    """Leave out differences of refused paths if other requests change alike: the cause is a proxy that was added or
    removed.
    """
    return [each for each in differences if not _is_refused(each) or _subject(each) not in shown_subjects]


@dataclass(frozen=True, slots=True)
class _Namer:
    """Names callers and workloads, including invented ones."""

    callers: CallerWords
    invented: Invention | None

    def caller(self, each: ChangeGroup) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the ids and texts of the callers. Invented pods are callers of their own."""
        pods = self.callers.invented(each.callers)
        if self.invented is not None and pods:
            words = dict.fromkeys(map(self.invented.words, pods))
            return tuple(f"pod:{key}" for key in pods), tuple(words)
        return self.callers.ids(each.callers), self.callers.words(each.callers)

    def is_beside(self, difference: VerdictDifference) -> bool:
        """Return whether a difference is about an invented pod that calls itself."""
        pods = self.callers.invented(difference.callers)
        return bool(pods) and set(pods) <= set(difference.pair.members)

    def facts(self, key: str) -> Facts:
        """Return the facts that network policies know about an invented pod."""
        assert self.invented is not None  # noqa: S101 - else there are none
        pod = self.invented.pods[key]
        home = self.invented.namespaces.get(pod.namespace) or Namespace(pod.namespace)
        return Facts({SOURCE_LABELS: labels_text(pod.labels), SOURCE_NAMESPACE: labels_text(home.labels)})

    def destination(self, name: str) -> str:
        """Return the text of a destination."""
        key = name.partition(":")[2]
        return self.invented.words(key) if self.invented is not None and key in self.invented.pods else name

    def text(self, text: str) -> str:
        """Replace the names of invented pods in a sentence by their description."""
        return text if self.invented is None else self.invented.in_words(text)


def _requests(each: ChangeGroup, namer: _Namer) -> ChangedRequests:
    names = [f"{each.kind}:{member}" for member in each.members]
    if each.services:
        is_direct = any(difference.entrance.service is None for difference in each.differences)
        services = [f"service:{service}" for service in each.services]
        names = [*names, *services] if is_direct else services
    ids, words = namer.caller(each)
    condition = None if each.when == ALWAYS else namer.text(condition_text(each.when))
    if Spelling.PLAIN not in each.spellings and condition is None:
        condition = _SPELLED[each.spellings[0]] if len(each.spellings) == 1 else _ODD
    spellings = tuple(SPELLINGS[spelling] for spelling in each.spellings)
    descriptions = tuple(dict.fromkeys(map(namer.destination, names))) if namer.invented is not None else ()
    return ChangedRequests(ids, words, tuple(names), each.ports, condition, spellings, descriptions)


_SPELLED = {
    Spelling.ENCODED_SLASH: "a path with an encoded slash",
    Spelling.RESPELLED: "a path that is spelled otherwise than patterns expect",
    Spelling.BAD_HOST: "an invalid host",
}
_ODD = "a path or a host that is spelled oddly"


def _change(each: ChangeGroup, namer: _Namer) -> VerdictChange:
    difference = each.differences[0]
    confirmation = difference.confirmation
    assert confirmation is not None  # noqa: S101 - else it is a doubt
    return VerdictChange(
        _requests(each, namer),
        _side(confirmation.old, difference.old, namer),
        _side(confirmation.new, difference.new, namer),
        tuple(confirmation.question.arguments),
    )


def _side(decision: Decision, ending: Ending, namer: _Namer) -> SideVerdict:
    if decision.allowed == ending.allowed:
        reason = namer.text(decision.reason)
        return SideVerdict(decision.allowed, decision.policy, decision.rule, decision.span, reason)
    origin = ending.origin  # the outcome comes from another pod behind the Service
    policy = origin.policy if origin is not None else None
    return SideVerdict(
        ending.allowed,
        str(policy) if policy is not None else None,
        origin.index if origin is not None and policy is not None else None,
        origin.span if origin is not None else None,
        str(origin) if origin is not None else "no rule",
    )


def _unproven(
    comparison: AuthorityComparison, namer: _Namer, shown_subjects: Collection[_Subject]
) -> Iterator[Unproven]:
    by_reason: dict[tuple[DoubtReason, str], list[VerdictDifference]] = {}
    shown = [each for each in comparison.differences if namer.callers.invented(each.callers)]
    for doubt in comparison.doubts:
        doubtful = doubt.difference if doubt.reason is DoubtReason.NOT_CONFIRMED else None
        if doubtful is not None and _is_shown(doubtful, shown, namer):
            continue  # an invented pod is the example
        by_reason.setdefault(_kind(doubt), []).extend([doubt.difference] if doubt.difference is not None else [])
    for (reason, subject), differences in by_reason.items():
        if not differences:
            yield Unproven(reason, namer.text(subject))
        for each in group(_without_refused(differences, shown_subjects)):
            yield Unproven(reason, namer.text(subject), each.is_wider, _requests(each, namer))


def _is_shown(doubtful: VerdictDifference, shown: Iterable[VerdictDifference], namer: _Namer) -> bool:
    """Return whether an invented pod that changes its verdict is an example of the doubtful callers."""
    for each in shown:
        same = each.pair is doubtful.pair and each.entrance is doubtful.entrance
        if same and each.new.allowed is doubtful.new.allowed:
            for key in namer.callers.invented(each.callers):
                if residual(doubtful.when, namer.facts(key)) != NEVER:
                    return True
    return False


def _kind(doubt: ComparisonDoubt) -> tuple[DoubtReason, str]:
    if doubt.reason is DoubtReason.NOT_CONFIRMED:
        return doubt.reason, ""  # the requests name the subject
    return doubt.reason, doubt.subject


def _unread(comparison: AuthorityComparison) -> Iterator[str]:
    """Yield the objects of unread kinds that may make a difference.

    An object makes no difference if it is the same on both sides and all objects that it may act on are the same.
    """
    before, after = (
        {str(unread): unread for unread in authority.unread_objects.objects if _acts(unread) and unread.part is None}
        for authority in (comparison.old, comparison.new)
    )
    yield from _otherwise(comparison, before, after)


def _left_out(comparison: AuthorityComparison) -> Iterator[str]:
    """Yield the unread parts that may make a difference, by the same rule."""
    before, after = (
        {str(unread.part): unread for unread in authority.unread_objects.objects if _acts(unread) and unread.part}
        for authority in (comparison.old, comparison.new)
    )
    yield from _otherwise(comparison, before, after)


def _otherwise(
    comparison: AuthorityComparison, before: Mapping[str, Unread], after: Mapping[str, Unread]
) -> Iterator[str]:
    """Yield the names of objects that differ between the sides, or whose world differs."""
    same_world = comparison.old.world.objects == comparison.new.world.objects
    for name in sorted(before.keys() | after.keys()):
        was, now = before.get(name), after.get(name)
        if not same_world or was is None or now is None or content_of(was.document) != content_of(now.document):
            yield name


def _acts(unread: Unread) -> bool:
    return unread.kind.effect is not UnreadEffect.NONE
