"""Rules filed by whom they may concern, so that a caller's rules are found without looking at all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from eastgate.policy import AccountsOf, And, Is, OneOf, Or, Predicate
from eastgate.policy.attributes import IDENTITY, MESH_NAME
from eastgate.targets.envoy.callers import AccountOf, Caller, Known, Naming
from eastgate.world import account_of

__all__ = ["Filed"]

_Whom: TypeAlias = "frozenset[str | AccountOf] | None"  # None: anyone


@dataclass(slots=True)
class Filed:
    """The places of rules in their order, by the callers whom they may match."""

    naming: Naming
    exact: dict[str, list[int]] = field(default_factory=dict)
    accounts: dict[AccountOf, list[int]] = field(default_factory=dict)
    anyone: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, rules: Iterable[Predicate], naming: Naming) -> Filed:
        """All of them."""
        filed = cls(naming)
        for place, rule in enumerate(rules):
            whom = filed._whom(rule)
            if whom is None:
                filed.anyone.append(place)
                continue
            for one in whom:
                if isinstance(one, AccountOf):
                    filed.accounts.setdefault(one, []).append(place)
                else:
                    filed.exact.setdefault(one, []).append(place)
        return filed

    def concerning(self, caller: Caller) -> Sequence[int]:
        """The places of all rules that may match a caller of this cell, in order."""
        found = [self.anyone]
        if isinstance(caller, Known):
            found.append(self.exact.get(caller.identity, []))
            account = account_of(caller.identity)
            if account is not None:
                found.append(self.accounts.get(AccountOf(*account[:2]), []))
        elif isinstance(caller, AccountOf):
            found.append(self.accounts.get(caller, []))
        if sum(1 for one in found if one) <= 1:
            return next((one for one in found if one), [])
        return sorted({place for one in found for place in one})

    def _whom(self, predicate: Predicate) -> _Whom:
        match predicate:
            case Is(attribute, OneOf(values)) if attribute == IDENTITY:
                return frozenset(str(value) for value in values)
            case Is(attribute, AccountsOf(domain, namespace)) if attribute == IDENTITY:
                return frozenset({AccountOf(domain, namespace)})
            case Is(attribute, OneOf(values)) if attribute == MESH_NAME:
                found = (self.naming.identity(str(value)) for value in values)
                return frozenset(identity for identity in found if identity is not None)
            case And(parts):
                narrow = [whom for part in parts if (whom := self._whom(part)) is not None]
                return min(narrow, key=len) if narrow else None
            case Or(parts):
                every: set[str | AccountOf] = set()
                for part in parts:
                    whom = self._whom(part)
                    if whom is None:
                        return None
                    every |= whom
                return frozenset(every)
            case _:
                return None
