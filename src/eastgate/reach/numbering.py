"""The list of caller cells: cells that rules distinguish, existing accounts, and callers in questions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from eastgate.authority.authority import Authority
from eastgate.cluster import service_account_id
from eastgate.ir import And, Computed, Is, Layer, OneOf, Predicate, atoms, mentions
from eastgate.ir.attributes import IDENTITY
from eastgate.ir.symbolic.caller_cells import CALLER_ATTRIBUTES, CallerCells
from eastgate.ir.symbolic.callers import AccountsIn, CallerCell, IdentityCell
from eastgate.reach.caller_sets import CallerSets


def number_callers(
    authorities: Sequence[Authority], layers: Iterable[Layer], known: Iterable[str] = (), namespaces: Iterable[str] = ()
) -> CallerSets:
    """Return every cell that a rule of these layers distinguishes, and every account and namespace of some authorities.

    The authorities have the same settings. The identities in `known` and the accounts of `namespaces` also have their
    own cells.
    """
    settings = authorities[0].settings
    cells = CallerCells(settings)
    identities = set(known)
    declared = set(chain.from_iterable(map(_accounts, authorities)))
    asked: list[Is] = []
    named: list[CallerCell] = []
    for part in _parts(layers):
        if isinstance(part, Is) and part.attribute is IDENTITY and isinstance(part.matcher, OneOf):
            identities.update(map(str, part.matcher.values))  # this is the usual case
        else:
            for atom in atoms(part):
                if isinstance(atom, Is):
                    asked.append(atom)
                elif atom.pattern is not None and atom.pattern[0] == IDENTITY:
                    named += cells.named_by_pattern(atom.pattern[1])
    mentioned = {*cells.cells(asked, identities, with_names=True), *named}
    unnamed = frozenset(map(IdentityCell, declared)) - mentioned
    every = [*cells.cells(asked, identities | declared, with_names=True), *named]
    used = {*namespaces, *(name for authority in authorities for name in authority.world.namespaces_in_use())}
    accounts = {AccountsIn(settings.trust_domain, name) for name in used}
    numbered = list(dict.fromkeys([*every, *sorted(accounts, key=str)]))
    cells.tell_apart(numbered)
    return CallerSets(cells, numbered, frozenset(unnamed))


def _accounts(authority: Authority) -> Iterator[str]:
    domain, world = authority.settings.trust_domain, authority.world
    accounts = {(account.namespace, account.name) for account in world.service_accounts.values()}
    accounts |= {(pod.namespace, pod.service_account) for pod in world.workloads.values() if pod.is_pod}
    return (service_account_id(domain, *account) for account in accounts)


def caller_atoms(layers: Iterable[Layer]) -> list[Is | Computed]:
    """Return every atom on callers that can change an outcome, once."""
    asked: dict[Is | Computed, None] = {}
    for part in _parts(layers):
        if not isinstance(part, Is):
            asked.update(dict.fromkeys(filter(_is_about_callers, atoms(part))))
        elif part.attribute in CALLER_ATTRIBUTES:
            asked[part] = None
    return list(asked)


def _parts(layers: Iterable[Layer]) -> Iterator[Predicate]:
    """Yield the parts of the conditions of selectors and rules, each condition once."""
    seen: set[int] = set()
    for layer in layers:
        if id(layer) in seen:
            continue
        seen.add(id(layer))
        rules = (rule for each in layer.chains for rule in each.rules(observed=False))
        for condition in chain((case.when for case in layer.cases), (rule.when for rule in rules)):
            if id(condition) not in seen:
                seen.add(id(condition))
                yield from condition.parts if isinstance(condition, And) else (condition,)


def _is_about_callers(atom: Is | Computed) -> bool:
    return not CALLER_ATTRIBUTES.isdisjoint(mentions(atom))
