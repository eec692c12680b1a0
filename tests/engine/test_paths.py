"""Paths: the form that proxies hand on, the canonical form, refused paths, and paths that policies cannot name."""

from __future__ import annotations

import pytest

from eastgate.ir import Computed, Is, Known, OneOf, Or, Predicate, Prefix, Suffix
from eastgate.ir.attributes import METHOD, PATH, TARGET, URL_PATH, header
from eastgate.ir.paths import (
    any_path,
    comparable_path,
    control_character,
    encoded_path,
    handed_path,
    is_canonical,
    is_refused,
    is_respelled,
    is_sensitive,
    path_problem,
    respelled_path,
    sent_path,
)


@pytest.mark.parametrize(
    ("raw", "handed", "compared"),
    [
        ("/", "/", "/"),
        ("/a/b", "/a/b", "/a/b"),
        ("/a?b=/c#d", "/a", "/a"),
        ("/a#b?c", "/a", "/a"),
        ("*", "*", "*"),
        ("a/../b", "a/../b", "a/../b"),  # does not begin with a slash: no dot segments
        ("/a/./b", "/a/b", "/a/b"),
        ("/a/b/../c", "/a/c", "/a/c"),
        ("/../a", "/a", "/a"),
        ("/a/b/..", "/a/", "/a/"),
        ("/a/b/.", "/a/b/", "/a/b/"),
        ("//a///b//", "/a/b/", "/a/b/"),
        ("/a\\b", "/a/b", "/a/b"),
        ("/%61%2E%7e", "/a.~", "/a.~"),
        ("/a/%2e%2e/b", "/b", "/b"),
        ("/a/..;x=1/b", "/b", "/b"),
        ("/a/%2e%2e;x/b", "/a/..;x/b", "/a/..;x/b"),
        ("/x%40y", "/x%40y", "/x@y"),
        ("/%c3%a9", "/%c3%a9", "/%C3%A9"),
        ("/é", "/%C3%A9", "/%C3%A9"),
        ("/a b", "/a%20b", "/a%20b"),
        ("/\udcff", "/%FF", "/%FF"),  # a byte that is no UTF-8
        ("/\ud800", "/%ED%A0%80", "/%ED%A0%80"),
        ("/[x]", "/[x]", "/%5Bx%5D"),
        ("/%", "/%", "/%"),
        ("/%4", "/%4", "/%4"),
        ("/%%34%30", "/%2540", "/%2540"),  # a lone percent sign does not get a meaning
        ("/%%34x%%33%31", "/%4x%2531", "/%4x%2531"),
        ("/a%2Fb", "/a%2Fb", "/a%2Fb"),
    ],
)
def test_a_path_is_handed_on_normalised_and_compared_in_its_canonical_form(
    raw: str, handed: str, compared: str
) -> None:
    assert handed_path(raw) == handed
    assert comparable_path(raw) == compared
    assert is_respelled(handed) == (handed != compared)


@pytest.mark.parametrize(
    ("raw", "sent"),
    [
        ("", "/"),
        ("?a", "/"),
        ("/a/../b//", "/a/../b//"),
        ("/a b<`", "/a%20b%3C%60"),
        ("/é%41", "/é%41"),
        ("/a#b?c", "/a"),
    ],
)
def test_a_path_as_it_is_sent_is_not_normalised(raw: str, sent: str) -> None:
    assert sent_path(raw) == sent


@pytest.mark.parametrize(
    ("path", "refused"),
    [
        ("/a%2fb", True),
        ("/a%2Fb", True),
        ("/a%5cb", True),
        ("/a/..;x/b", True),
        ("/a/.;", True),
        ("/a/..%3Bx", True),
        ("/a/...;x", False),
        ("/a;x/b", False),
        ("/a%20b", False),
        ("/a", False),
        (None, False),
    ],
)
def test_paths_that_servers_interpret_differently_are_refused(path: Known, refused: bool) -> None:
    assert is_refused(path) is refused


def test_each_of_several_paths_is_exact_or_begins_or_ends_so() -> None:
    assert any_path(["/a", "/b/%41"]) == Is(PATH, OneOf(frozenset({"/a", "/b/A"})))
    assert any_path(["/a//*"]) == Is(PATH, Prefix("/a/"))
    assert any_path(["*/%40.png"]) == Is(PATH, Suffix("/@.png"))
    assert any_path(["/a", "/b*"]) == Or((Is(PATH, OneOf(frozenset({"/a"}))), Is(PATH, Prefix("/b"))))


_NOT_NORMAL = "no request has this form once its path is normalized"
_SLASH = "a request with an encoded slash is always refused"


@pytest.mark.parametrize(
    ("text", "exact", "wildcard", "letters"),
    [
        ("/a", None, None, None),
        ("/a%40", None, None, None),
        ("/a*", None, None, None),
        ("/a/..*", None, None, None),
        ("/a\x00", *["it has a control character (U+0000)"] * 3),
        ("/a?b", *["paths are compared without query and fragment"] * 3),
        ("/a%2Fb", *[_SLASH] * 3),
        ("/%2e%2e;x", *[_SLASH] * 3),  # in the canonical form
        ("/..;x/../a", *[_SLASH] * 3),  # in the written form
        ("/a/../b", *[_NOT_NORMAL] * 3),
        ("*/../b", None, _NOT_NORMAL, _NOT_NORMAL),  # without a wildcard, it does not begin with a slash
        ("/%61*", _NOT_NORMAL, _NOT_NORMAL, None),
        ("/%61", _NOT_NORMAL, _NOT_NORMAL, None),
    ],
)
def test_a_path_that_no_request_has_is_a_problem(
    text: str, exact: str | None, wildcard: str | None, letters: str | None
) -> None:
    problems = path_problem(text), path_problem(text, wildcard=True), path_problem(text, wildcard=True, letters=True)
    assert tuple(problem and problem[0] for problem in problems) == (exact, wildcard, letters)


@pytest.mark.parametrize(("text", "instead"), [("/a?b#c", "/a"), ("/a/../b/*", "/b/*"), ("*/./b", "*/b"), ("//", "/")])
def test_a_path_that_requests_have_is_suggested(text: str, instead: str) -> None:
    problem = path_problem(text, wildcard=True)
    assert problem is not None
    assert problem[1] == f"write {instead}"


def test_characters_that_no_uri_may_have_are_encoded_and_the_rest_stays() -> None:
    assert encoded_path("/a b/%41[/../é") == "/a%20b/%41%5B/../%C3%A9"


@pytest.mark.parametrize(("text", "character"), [("ab", None), ("a\x9fb\x00", "U+009F"), ("\x7f", "U+007F")])
def test_the_first_control_character_is_named(text: str, character: str | None) -> None:
    assert control_character(text) == character


@pytest.mark.parametrize(
    ("atom", "sensitive"),
    [
        (Computed("f", frozenset({PATH}), bool, pattern=(PATH, "/a@.*")), True),
        (Computed("f", frozenset({PATH}), bool, pattern=(PATH, "/a/.*")), False),
        (Computed("f", frozenset({METHOD}), bool, pattern=(METHOD, "/a@.*")), False),
        (Computed("f", frozenset({PATH}), bool), False),
        (Is(PATH, Prefix("/a@")), False),
        (Is(TARGET, Prefix("/a@")), True),
        (Is(URL_PATH, OneOf(frozenset({"/a"}))), True),
        (Computed("f", frozenset({METHOD, TARGET}), bool), True),
        (Is(header("referer"), Prefix("/a@")), False),
    ],
)
def test_patterns_and_expressions_on_paths_may_tell_spellings_apart(atom: Predicate, sensitive: bool) -> None:
    assert is_sensitive(atom) is sensitive


@pytest.mark.parametrize(
    ("path", "canonical"),
    [
        *(
            (path, True)
            for path in ("/", "*", "/a@b", "/a%20b", "/caf%C3%A9", "/a%3Fb", "/a?b=%40//../#x", "/a%2540", "/100%")
        ),
        *(
            (path, False)
            for path in ("/a%40b", "/%61", "/a%3fb", "/caf%c3%a9", "/café", "/a[0]", "/a b", "/a#b", "/a#b?c")
        ),
        *((path, False) for path in ("//a", "/a//b", "/./a", "/a/..", "/a/%2e%2e/b", "/a\\b", "/a/..;x")),
    ],
)
def test_a_path_is_canonical_in_one_spelling(path: str, canonical: bool) -> None:
    assert is_canonical(path) is canonical


@pytest.mark.parametrize(
    "raw", ["/a", "/a/..;x/b", "/a/%2e%2e;x/b", "/%u0061pi/%2e;/a", "/a/%2E./b", "/%%41", "/a/.%2e;?b=/..;c", "/x%40y"]
)
def test_a_path_that_a_proxy_handed_on_is_compared_like_the_sent_path(raw: str) -> None:
    handed = handed_path(raw)
    assert comparable_path(respelled_path(f"{handed}?b=/..;c")) == comparable_path(raw)
    assert respelled_path(f"{handed}?b=/..;c").endswith("?b=/..;c")
