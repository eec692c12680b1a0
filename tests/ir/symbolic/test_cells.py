"""One value represents each cell of an attribute."""

from __future__ import annotations

from ipaddress import ip_network
from itertools import product

import pytest

from eastgate.ir import AccountsOf, InNetwork, Is, Matcher, OneOf, Prefix, Present, Suffix
from eastgate.ir.attributes import ADDRESS, HOST, IDENTITY, PATH, PORT, SENT_PATH, Attribute, header
from eastgate.ir.symbolic import cells
from eastgate.ir.symbolic.cells import OTHER, cells_of_attributes, free_port, ports_named, representatives


def _one_of(*values: str | int) -> OneOf:
    return OneOf(frozenset(values))


def test_the_value_that_no_policy_names_comes_first() -> None:
    assert representatives(HOST, []) == [OTHER, None]
    assert representatives(HOST, [_one_of("b", "a"), Present(), _one_of("a")]) == [OTHER, None, "a", "b"]
    assert representatives(PORT, [_one_of(2, 1), _one_of(4), Present()]) == [3, 1, 2, 4]


def test_ports() -> None:
    assert ports_named([_one_of(1, 2), _one_of("x"), Present()]) == {1, 2}
    assert free_port([1, 2, 4]) == 3
    assert free_port([]) == 1
    assert free_port(range(65535)) == 65535
    assert free_port(range(1, 65536)) is None
    assert representatives(PORT, [OneOf(frozenset(range(1, 65536)))])[0] == 1


def test_every_combination_of_prefixes_and_suffixes_has_a_text() -> None:
    matchers: list[Matcher] = [Prefix("a"), Prefix("ab"), Suffix("y"), Suffix("xy"), _one_of("ab")]
    texts = [text for text in representatives(HOST, matchers) if isinstance(text, str)]
    seen = {tuple(matcher.contains(text) for matcher in matchers) for text in texts}
    letters = ["".join(word) for length in range(6) for word in product("abxy", repeat=length)]
    assert seen == {tuple(matcher.contains(text) for matcher in matchers) for text in letters}


def test_accounts_of_a_namespace_differ_from_deeper_paths() -> None:
    matchers: list[Matcher] = [AccountsOf("td", "a"), Prefix("spiffe://td/"), Suffix("x"), _one_of("_other0_")]
    texts = [text for text in representatives(IDENTITY, matchers) if isinstance(text, str)]
    seen = {tuple(matcher.contains(text) for matcher in matchers) for text in texts}
    callers = [
        f"{start}{end}"
        for start in ("spiffe://td/ns/a/sa/", "spiffe://td/ns/a/sa/b/", "spiffe://td/", "other/", "_other0_")
        for end in ("x", "y", "")
    ]
    assert seen == {tuple(matcher.contains(text) for matcher in matchers) for text in callers}


@pytest.mark.parametrize(("attribute", "is_left_out"), [(PATH, True), (SENT_PATH, False), (HOST, False)])
def test_a_refused_path_is_no_representative(attribute: Attribute, is_left_out: bool) -> None:
    assert ("/a%2fb" not in representatives(attribute, [_one_of("/a%2fb", "/a")])) is is_left_out


def test_an_unnamed_caller_is_in_each_namespace_and_beneath() -> None:
    named = _one_of("spiffe://td/ns/a/sa/_other0_", "spiffe://td/ns/a/sa/x")
    matchers: list[Matcher] = [AccountsOf("td", "a"), Prefix("spiffe://td/ns/a/sa/"), named]
    texts = [text for text in representatives(IDENTITY, matchers) if isinstance(text, str)]
    assert {tuple(matcher.contains(text) for matcher in matchers) for text in texts} == {
        (True, True, True),
        (True, True, False),
        (False, True, False),
        (False, False, False),
    }


def test_each_stretch_between_edges_of_networks_has_an_address() -> None:
    v4, v6 = ("10.0.0.0/24", "10.0.0.128/25", "127.0.0.0/8", "255.0.0.0/8"), ("fd00::/64", "::1/128")
    matcher = InNetwork(tuple(map(ip_network, (*v4, *v6))))
    any_address = "0.0.0.0"  # noqa: S104 - no test listens on it
    addresses = [any_address, "10.0.0.0", "10.0.0.128", "10.0.1.0", "128.0.0.0", "255.0.0.0"]
    addresses += ["::", "::2", "fd00::", "fd00:0:0:1::"]
    assert representatives(ADDRESS, [matcher, Present()]) == addresses
    assert representatives(header("x-address"), [matcher]) == [None, *addresses]


def test_of_an_attribute_with_too_many_cells_only_a_few_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = [*(Is(PATH, Prefix(f"/{n}")) for n in range(3)), Is(PATH, Suffix("x")), Is(HOST, _one_of("h"))]
    every = representatives(PATH, [atom.matcher for atom in asked[:4]])
    monkeypatch.setattr(cells, "_MAX_CELLS", 8)
    assert cells_of_attributes(asked, [HOST, PATH]) == ({HOST: [OTHER, None, "h"], PATH: every}, True)
    monkeypatch.setattr(cells, "_MAX_CELLS", 7)
    assert cells_of_attributes(asked, [PATH, HOST]) == ({HOST: [OTHER, None, "h"], PATH: [OTHER, None]}, False)
