"""Sets of callers as ids and as words: all accounts of a namespace are `sa:shop/*`, not a list of them."""

from __future__ import annotations

from collections import defaultdict

from eastgate.ir.symbolic.callers import (
    AnonymousCell,
    CallerCell,
    CallerKind,
)
from eastgate.reach.caller_sets import CallerSet, CallerSets
from eastgate.reports.effective.words import ANY_IDENTITY, ANYONE

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
