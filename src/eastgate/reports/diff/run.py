"""Compares two authorities, and says it as people do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

from eastgate.authority.authority import Authority
from eastgate.authority.decisions import Decision
from eastgate.cluster.unread import Unread, UnreadEffect
from eastgate.ir import ALWAYS, NEVER
from eastgate.ir.attributes import REFUSED_PATH
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
from eastgate.reports.diff.model import SPELLINGS, ChangedRequests, DiffReport, SideVerdict, Unproven, VerdictChange
from eastgate.reports.effective.words import ANY_IDENTITY, ANYONE

# Sets of callers as ids and as words: all accounts of a namespace are `sa:shop/*`, not a list of them.


_OTHERS = {
    CallerKind.OTHER_ACCOUNT: "accounts of other namespaces",
    CallerKind.OTHER_SPIFFE: "other SPIFFE IDs",
    CallerKind.OTHER_NAME: "other DNS names",
}


class CallerWords:
    """Names sets of callers."""

    def __init__(self, callers: CallerSets) -> None:
        self._callers = callers
        self._domain = callers.callers.domain
        self._namespaces: dict[str, CallerSet] = defaultdict(int)
        self._identities: CallerSet = 0
        for number, cell in enumerate(callers.cells):
            namespace = self._namespace(cell)
            if namespace is not None:
                self._namespaces[namespace] |= 1 << number
            if not isinstance(cell, AnonymousCell):
                self._identities |= 1 << number

    def _namespace(self, cell: CallerCell) -> str | None:
        """Return the namespace of accounts of the trust domain."""
        account = cell.account_in(self._domain)
        return (account[0] or None) if account is not None else None

    def ids(self, chosen: CallerSet) -> tuple[str, ...]:
        """Return the ids of cells, as `eastgate graph` has them."""
        return tuple(cell.id_in(self._domain) for cell in self._callers.cells_in(chosen))

    def words(self, chosen: CallerSet) -> tuple[str, ...]:
        """Return the callers of a set in few words."""
        if chosen == self._callers.everybody:
            return (ANYONE,)
        if chosen == self._identities:
            return (ANY_IDENTITY,)
        most = chosen.bit_count() * 2 > self._callers.everybody.bit_count()
        left = self._callers.everybody & ~chosen
        if most and left.bit_count() <= 3 and chosen.bit_count() > 3:
            return (f"{ANYONE} but {', '.join(self._listed(left))}",)
        return tuple(self._listed(chosen))

    def _listed(self, chosen: CallerSet) -> list[str]:
        words: dict[str, None] = {}
        for cell in self._callers.cells_in(chosen):
            namespace = self._namespace(cell)
            whole = self._namespaces[namespace] if namespace is not None else 0
            if namespace is not None and whole & chosen == whole and whole.bit_count() > 1:
                words[f"sa:{namespace}/*"] = None
            else:
                words[self._word(cell)] = None
        return list(words)

    def _word(self, cell: CallerCell) -> str:
        kind = cell.kind_in(self._domain)
        if kind is CallerKind.NAMESPACE:
            namespace = cell.name_in(self._domain)
            alone = self._namespaces[namespace].bit_count() == 1
            return f"sa:{namespace}/*" if alone else f"other accounts of {namespace}"
        return _OTHERS.get(kind) or cell.id_in(self._domain)


_PROPER_PATHS = Facts({REFUSED_PATH: None})


def diff(old: Authority, new: Authority, *, unread: bool = True) -> DiffReport:
    """Compare two authorities that have the same settings.

    `unread`: objects of kinds that are not read keep the result from being proven, where they may make a difference.
    """
    return report_of(compare(old, new), unread=unread)


def report_of(comparison: AuthorityComparison, *, unread: bool = True) -> DiffReport:
    """Return a comparison as people say it."""
    words = CallerWords(comparison.callers)
    differences = comparison.differences
    doubtful = [doubt.difference for doubt in comparison.doubts if doubt.difference is not None]
    said = {_subject(each) for each in (*differences, *doubtful) if not _is_refused(each)}
    changes = [_change(each, words) for each in group(_worth_saying(differences, said))]
    unproven = [*_unproven(comparison, words, said)]
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
    """Return whether a difference is about such paths alone as every proxy refuses."""
    return residual(difference.when, _PROPER_PATHS) == NEVER


def _worth_saying(differences: Iterable[VerdictDifference], said: Collection[_Subject]) -> list[VerdictDifference]:
    """Leave out differences of paths that proxies refuse where other requests change alike: a proxy comes or goes."""
    return [each for each in differences if not _is_refused(each) or _subject(each) not in said]


def _requests(each: ChangeGroup, words: CallerWords) -> ChangedRequests:
    names = [f"{each.kind}:{member}" for member in each.members]
    if each.services:
        is_direct = any(difference.entrance.service is None for difference in each.differences)
        services = [f"service:{service}" for service in each.services]
        names = [*names, *services] if is_direct else services
    condition = None if each.when == ALWAYS else condition_text(each.when)
    if Spelling.PLAIN not in each.spellings and condition is None:
        condition = _SPELLED[each.spellings[0]] if len(each.spellings) == 1 else _ODD
    spellings = tuple(SPELLINGS[spelling] for spelling in each.spellings)
    callers = words.ids(each.callers), words.words(each.callers)
    return ChangedRequests(*callers, tuple(names), each.ports, condition, spellings)


_SPELLED = {
    Spelling.ENCODED_SLASH: "a path with an encoded slash",
    Spelling.RESPELLED: "a path that is spelled otherwise than patterns expect",
    Spelling.BAD_HOST: "a host that is none",
}
_ODD = "a path or a host that is spelled oddly"


def _change(each: ChangeGroup, words: CallerWords) -> VerdictChange:
    difference = each.differences[0]
    confirmation = difference.confirmation
    assert confirmation is not None  # noqa: S101 - else it is a doubt
    return VerdictChange(
        _requests(each, words),
        _side(confirmation.old, difference.old),
        _side(confirmation.new, difference.new),
        tuple(confirmation.question.arguments),
    )


def _side(decision: Decision, ending: Ending) -> SideVerdict:
    if decision.allowed == ending.allowed:
        return SideVerdict(decision.allowed, decision.policy, decision.rule, decision.span, decision.reason)
    origin = ending.origin  # the answer to the question is about another of the pods behind its Service
    policy = origin.policy if origin is not None else None
    return SideVerdict(
        ending.allowed,
        str(policy) if policy is not None else None,
        origin.index if origin is not None and policy is not None else None,
        origin.span if origin is not None else None,
        str(origin) if origin is not None else "no rule",
    )


def _unproven(comparison: AuthorityComparison, words: CallerWords, said: Collection[_Subject]) -> Iterator[Unproven]:
    by_reason: dict[tuple[DoubtReason, str], list[VerdictDifference]] = {}
    for doubt in comparison.doubts:
        by_reason.setdefault(_kind(doubt), []).extend([doubt.difference] if doubt.difference is not None else [])
    for (reason, subject), differences in by_reason.items():
        if not differences:
            yield Unproven(reason, subject)
        for each in group(_worth_saying(differences, said)):
            yield Unproven(reason, subject, each.is_wider, _requests(each, words))


def _kind(doubt: ComparisonDoubt) -> tuple[DoubtReason, str]:
    if doubt.reason is DoubtReason.NOT_CONFIRMED:
        return doubt.reason, ""  # the requests say what it is about
    return doubt.reason, doubt.subject


def _unread(comparison: AuthorityComparison) -> Iterator[str]:
    """Yield the objects of unread kinds that may make a difference.

    Those that are the same on both sides do not, where all that they may act on is the same too.
    """
    before, after = (
        {str(unread): unread for unread in authority.unread_objects.objects if _acts(unread) and unread.part is None}
        for authority in (comparison.old, comparison.new)
    )
    yield from _otherwise(comparison, before, after)


def _left_out(comparison: AuthorityComparison) -> Iterator[str]:
    """Yield the parts that cannot be read and may make a difference, likewise."""
    before, after = (
        {str(unread.part): unread for unread in authority.unread_objects.objects if _acts(unread) and unread.part}
        for authority in (comparison.old, comparison.new)
    )
    yield from _otherwise(comparison, before, after)


def _otherwise(
    comparison: AuthorityComparison, before: Mapping[str, Unread], after: Mapping[str, Unread]
) -> Iterator[str]:
    """Yield the names of objects that are on one side alone or say something else, or act in another world."""
    same_world = comparison.old.world.objects == comparison.new.world.objects
    for name in sorted(before.keys() | after.keys()):
        was, now = before.get(name), after.get(name)
        if not same_world or was is None or now is None or content_of(was.document) != content_of(now.document):
            yield name


def _acts(unread: Unread) -> bool:
    return unread.kind.effect is not UnreadEffect.NONE
