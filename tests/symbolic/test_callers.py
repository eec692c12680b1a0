"""What an atom says of a cell of callers."""

from __future__ import annotations

import pytest

from eastgate.ir import ALWAYS, NEVER, Is, Matcher, OneOf, Predicate, Prefix, Present, Suffix
from eastgate.ir.attributes import MESH_NAME
from eastgate.settings import Settings
from eastgate.symbolic.callers import AccountsIn, CallerCells

TAIL = ".serviceaccount.identity.linkerd.cluster.local"
IN_SHOP = AccountsIn("cluster.local", "shop")


@pytest.mark.parametrize(
    ("matcher", "settled"),
    [
        (Present(), ALWAYS),
        (Suffix(TAIL), ALWAYS),
        (Suffix(f".shop{TAIL}"), ALWAYS),
        (Suffix(f".bank{TAIL}"), NEVER),
        (Suffix(".elsewhere.example"), NEVER),
        (OneOf(frozenset({f"web.shop{TAIL}"})), NEVER),  # which has a cell of its own
        (Prefix("spiffe://"), NEVER),
        (Prefix("web."), Is(MESH_NAME, Prefix("web."))),  # true of some: it must be asked
    ],
)
def test_a_name_is_settled_for_the_other_accounts_of_a_namespace(matcher: Matcher, settled: Predicate) -> None:
    assert CallerCells(Settings()).settle(Is(MESH_NAME, matcher), IN_SHOP) == settled
