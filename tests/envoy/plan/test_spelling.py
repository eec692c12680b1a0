"""Literals as expressions for Envoy: they match a spelling if the literal matches the canonical path."""

from __future__ import annotations

import pytest
import re2
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eastgate.envoy.config.spelling import host_pattern, path_pattern
from eastgate.ir import Computed, OneOf, Prefix, Suffix
from eastgate.ir.addresses import comparable_host, is_host
from eastgate.ir.attributes import PATH
from eastgate.ir.paths import comparable_path, is_refused, is_respelled, is_sensitive
from tests.envoy.plan.normalizing import normalized_path

_PIECES = [
    *(
        "a",
        "b",
        "B",
        "D",
        "5",
        "4",
        "0",
        "2",
        "c",
        "3",
        "A",
        "/",
        "/",
        ".",
        "..",
        ";",
        "@",
        ":",
        "*",
        "=",
        "%",
        "[",
        "]",
    ),
    *("%40", "%3a", "%3A", "%2a", "%c3%a9", "%C3%A9", "%20", "%5b", "%5D", "%25", "%7c", "|", "%3", "%c", "%2e", "%61"),
]
paths = (
    st.lists(st.sampled_from(_PIECES), max_size=6)
    .map(lambda pieces: "/" + "".join(pieces))
    .filter(lambda path: "%00" not in path)
)
texts = st.lists(st.sampled_from(_PIECES), min_size=1, max_size=4).map("".join)


def _holds(matcher: OneOf | Prefix | Suffix, text: str, seen: str) -> bool:
    """As Envoy would say."""
    pattern = path_pattern(matcher, text)
    if pattern is not None:
        return re2.fullmatch(pattern, seen) is not None
    return matcher.contains(seen)


@settings(max_examples=3000)
@given(paths, texts, st.sampled_from([OneOf, Prefix, Suffix]))
@example("/x%3data", "data", Suffix)
@example("/x%40me", "0me", Suffix)
@example("/x%40me", "40me", Suffix)
@example("/[x", "5Bx", Suffix)
@example("/a%40", "/a%", Prefix)
@example("/a%4x", "/a%4", Prefix)
@example("/%%34%30", "/@", OneOf)
def test_a_literal_holds_of_what_envoy_sees_where_it_holds_of_the_canonical_path(
    raw: str, text: str, kind: type[OneOf] | type[Prefix] | type[Suffix]
) -> None:
    compared, seen = comparable_path(raw), normalized_path(raw)
    assert seen is not None
    if is_refused(compared) or is_refused(seen):
        assert is_refused(compared) == is_refused(seen)
        return
    canonical = comparable_path(f"/-{text}").removeprefix("/-") if kind is Suffix else comparable_path(f"/{text}")
    matcher: OneOf | Prefix | Suffix = OneOf(frozenset({canonical})) if kind is OneOf else kind(canonical)  # type: ignore[arg-type]
    if seen == "//":  # the root, which is a case of its own
        return
    assert _holds(matcher, canonical, seen) == matcher.contains(compared), path_pattern(matcher, canonical)


_CODES = [f"%{first}{second}" for first in "0123456789ABCDEFabcdef" for second in "1579ABDFbd"]
_TAILS = [*_CODES, "[", "]", "@", "%", "%%", "%5", "%5x", "%4", "%x", "%2x", "%B", "x"]


@pytest.mark.parametrize("text", ["%", "%2", "%4", "%5", "%7", "%B", "%5B", "%C3", "@"])
def test_a_prefix_may_end_inside_of_an_encoded_character(text: str) -> None:
    prefix = comparable_path(f"/a{text}")
    for tail in _TAILS:
        for raw in (f"/a{tail}", f"/a{tail}y", f"/a{tail}4"):
            _check_literal(Prefix(prefix), prefix, raw)


@pytest.mark.parametrize("text", ["B", "D", "0", "5", "5B", "5Bx", "5D", "40", "20", "7C", "C3", "A9", "b", "bx", "xB"])
def test_a_suffix_may_begin_inside_of_an_encoded_character(text: str) -> None:
    suffix = comparable_path(f"/-{text}").removeprefix("/-")
    for tail in _TAILS:
        for raw in (
            f"/{tail}",
            f"/x{tail}",
            f"/%5{tail}",
            f"/%{tail}",
            f"/{tail}x",
            f"/5{tail}",
            f"/5{text}",
            f"/[x{tail}",
        ):
            _check_literal(Suffix(suffix), suffix, raw)


def _check_literal(matcher: Prefix | Suffix, text: str, raw: str) -> None:
    compared, seen = comparable_path(raw), normalized_path(raw)
    if seen is not None and not is_refused(compared):
        assert _holds(matcher, text, seen) == matcher.contains(compared), (raw, path_pattern(matcher, text))


@given(paths)
def test_a_path_is_respelled_where_what_envoy_sees_is_not_canonical(raw: str) -> None:
    compared, seen = comparable_path(raw), normalized_path(raw)
    assert seen is not None
    if not is_refused(compared) and seen != "//":
        assert is_respelled(seen) == (seen != compared)


_PATTERNS = [
    *(
        "/a",
        "/a/.*",
        "/[^/]+/b",
        ".*",
        "/a[0-9]+",
        r"/a\.b",
        "/a/[^/]*(/.*)?",
        "/b?/.*",
        "/.+/a",
        "^/a.*$",
        "/[a-c]{2}",
    ),
    *("/.*0", "/a:b", "/.", "/[^a]*", ".*/?0", "/(a|b)", "/[A-z]+", "/.*@.*", "/a%40", "(?i)/%c3.*", "/..."),
]


@settings(max_examples=2000)
@given(paths, st.sampled_from(_PATTERNS))
def test_a_pattern_that_is_not_sensitive_does_not_tell_spellings_apart(raw: str, pattern: str) -> None:
    compared, seen = comparable_path(raw), normalized_path(raw)
    assert seen is not None
    test = Computed(pattern, frozenset({PATH}), lambda _: True, pattern=(PATH, pattern))
    if not is_sensitive(test) and not is_refused(compared) and seen != "//":
        assert (re2.fullmatch(pattern, compared) is None) == (re2.fullmatch(pattern, seen) is None)


def test_which_patterns_are_sensitive() -> None:
    found = [is_sensitive(Computed(one, frozenset({PATH}), lambda _: True, pattern=(PATH, one))) for one in _PATTERNS]
    assert found == [False] * 11 + [True] * 11


def test_a_plain_literal_stays_a_plain_comparison() -> None:
    assert path_pattern(OneOf(frozenset({"/a/b.png"})), "/a/b.png") is None
    assert path_pattern(Prefix("/api/"), "/api/") is None
    assert path_pattern(Suffix(".png"), ".png") is None
    assert path_pattern(OneOf(frozenset({"/users/@me"})), "/users/@me") == "/users/(?:@|%40)me"


_HOSTS = st.lists(st.sampled_from(["h", "H", ".", "a", "a.", ":", ":80", ":99999", "-", "@", "[::1]"]), max_size=4).map(
    "".join
)


@given(_HOSTS, st.sampled_from(["h", "a.h", "[::1]", ".h"]), st.sampled_from([OneOf, Suffix]))
def test_a_host_holds_with_a_dot_and_a_port(raw: str, text: str, kind: type[OneOf] | type[Suffix]) -> None:
    matcher: OneOf | Suffix = OneOf(frozenset({text})) if kind is OneOf else Suffix(text)
    if is_host(raw):
        held = re2.fullmatch(host_pattern(matcher, text), raw) is not None
        assert held == matcher.contains(comparable_host(raw))
