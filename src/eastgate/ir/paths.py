"""Comparison of paths: the same in every dialect and in the proxies that enforce policies.

A path is compared without query and fragment, in its *canonical form*. First, it is normalised as proxies do before
they hand a path on: unreserved `%XX` are decoded, a raw backslash becomes a slash, dot segments are removed and slashes
merged. Then each character that a path segment may have (RFC 3986, pchar) is written as itself. Every other character
is written as `%XX` of its UTF-8, in upper case. Applications decode all of them: `@` and `%40` are one character.

Expressions see the path that a proxy hands on, and compare it as a text. So if an expression reads the path, requests
whose path is not handed on in canonical form are refused.

If a policy reads paths, requests with a path that servers interpret differently are refused:

- an encoded slash or backslash
- a dot segment with parameters (`..;x`), which some servers cut off before they go up; a plainly written one is
  allowed, because proxies then go up themselves
- an encoded NUL, which every proxy that normalizes paths refuses
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from eastgate.basics.regexes import regex
from eastgate.ir.attributes import HANDED_PATHS, PATH
from eastgate.ir.matchers import Known, OneOf, Prefix, Suffix
from eastgate.ir.predicates import Computed, Is, Predicate, any_of, mentions

# RE2 and Python read these expressions alike, and proxies get the same ones. REFUSED ignores letter case.
REFUSED: Final = r"%(?:2f|5c|00)|/\.{1,2}(?:;|%3b)"
RESPELLED: Final = r"%[0-9A-Fa-f][a-f]|%[a-f][0-9A-F]|%2[146-9ABC]|%3[ABD]|%40|\[|\]"  # not canonical, though handed on
DECODED: Final = frozenset(":@!$&'()*+,;=")  # and the unreserved ones: all characters of path segments

_REFUSED = regex(REFUSED, re.IGNORECASE)
_RESPELLED = regex(RESPELLED)
_DOTS_WITH_PARAMETERS = regex(r"(?<=/)(\.{1,2});[^/]*")
_PLAIN_DOTS = regex(r"(?<=/)\.{1,2}(?=;)")
_ENCODED = regex(r"%([0-9A-Fa-f]{2})")
_PIECES = regex(r"%[0-9A-Fa-f]{2}|[^%]+|%")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_FORBIDDEN = regex(r"[^-A-Za-z0-9._~:@!$&'()*+,;=/%]")
_NOT_HANDED_ON = regex(r"[^-A-Za-z0-9._~:@!$&'()*+,;=/%\[\]]")  # proxies leave brackets as they are
_NOT_SENT = regex(r"[\x00-\x20<>`]")  # HTTP libraries send these as `%XX`
_SLASHES = regex(r"/{2,}")
_PLAIN_PATH = regex(r"/(?:[-A-Za-z0-9_~][-A-Za-z0-9._~]*/)*(?:[-A-Za-z0-9_~][-A-Za-z0-9._~]*)?")
_CONTROL = regex(r"[\x00-\x1f\x7f-\x9f]")


# Requests


def handed_path(raw: str) -> str:
    """Return the path as a proxy hands it on: normalised, without query and fragment, most characters unchanged."""
    return merge_slashes(normalize_path(raw))


def normalize_path(raw: str) -> str:
    """Return the path, without query and fragment, as an Envoy that does not merge slashes normalizes it."""
    path = _DOTS_WITH_PARAMETERS.sub(r"\1", re.split(r"[?#]", raw, maxsplit=1)[0])
    path = _NOT_HANDED_ON.sub(_encode, _with_letters(path).replace("\\", "/"))
    return _without_dot_segments(path)


def merge_slashes(path: str) -> str:
    """Return a path with one slash in the place of several."""
    return _SLASHES.sub("/", path)


def is_normalized(target: str) -> bool:
    """Return whether normalisation leaves the path of a target unchanged. The target may have a query.

    A target with a fragment is not normalised: some servers cut the fragment off, others add it to the query.
    """
    path = target.partition("?")[0]
    if _PLAIN_PATH.fullmatch(path) is None and not (path.startswith("/") and handed_path(path) == path):
        return False
    return "#" not in target


def respelled_path(handed: str) -> str:
    """Return a path, with its query, that a client may have sent when a proxy hands on this path.

    Normalisation leaves a normalised path unchanged, except `..;x`: proxies go up by it. So a proxy hands on `..;x`
    only if the client sent its dots as %2e.
    """
    path, mark, rest = handed.partition("?")
    return _PLAIN_DOTS.sub(lambda match: "%2e" * len(match[0]), path) + mark + rest


def comparable_path(raw: str) -> str:
    """Return the canonical form of a path, for comparison with policies. `is_refused` still detects a refused path."""
    return _canonical(handed_path(raw))


def sent_path(raw: str) -> str:
    """Return the path without query and fragment, as a proxy that normalises nothing compares it."""
    return _NOT_SENT.sub(_encode, re.split(r"[?#]", raw, maxsplit=1)[0]) or "/"


def is_refused(path: Known) -> bool:
    """Return whether a normalised path has a part that servers interpret differently."""
    return isinstance(path, str) and ("%" in path or ";" in path) and _REFUSED.search(path) is not None


def is_canonical(path: str) -> bool:
    """Return whether a path is written in its canonical form. It may have a query."""
    return path.partition("?")[0] == comparable_path(path)


def is_respelled(handed: str) -> bool:
    """Return whether a path that a proxy hands on has a character that is not in canonical form."""
    return _RESPELLED.search(handed) is not None


def _canonical(text: str) -> str:
    """Return a text with every character in canonical form; separators and dot segments stay unchanged."""
    return _FORBIDDEN.sub(_encode, _ENCODED.sub(_decode, text))


def _decode(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    return character if character in DECODED else match[0].upper()


def _encode(match: re.Match[str]) -> str:
    lone = "\udc80" <= match[0] <= "\udcff"  # a byte that is not UTF-8, as Python represents it
    return "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "surrogateescape" if lone else "surrogatepass"))


def _with_letters(text: str) -> str:
    """Decode unreserved characters. A lone percent sign is encoded if the result would give it a meaning."""
    decoded = ""
    alone: list[int] = []
    for piece in _PIECES.findall(text):
        if piece == "%":
            alone.append(len(decoded))
        unreserved = len(piece) == 3 and piece[0] == "%" and (character := chr(int(piece[1:], 16))) in _UNRESERVED
        decoded += character if unreserved else piece
    for index in reversed(alone):
        if _ENCODED.match(decoded, index):
            decoded = f"{decoded[:index]}%25{decoded[index + 1 :]}"
    return decoded


def _without_dot_segments(path: str) -> str:
    """Remove dot segments (RFC 3986, 5.2.4) from a path that starts with a slash. Other texts stay unchanged."""
    if not path.startswith("/"):
        return path
    segments = path.split("/")[1:]
    kept: list[str] = []
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)


# Policies


def any_path(paths: Iterable[str]) -> Predicate:
    """Match requests to ANY of these paths. Each is exact, or has one `*` at its beginning or end."""
    patterns = list(paths)
    exact = frozenset(comparable_path(path) for path in patterns if "*" not in path)
    parts: list[Predicate] = [Is(PATH, OneOf(exact))] if exact else []
    parts += [
        Is(PATH, Prefix(comparable_prefix(path[:-1])) if path.endswith("*") else Suffix(_comparable_suffix(path[1:])))
        for path in patterns
        if "*" in path
    ]
    return any_of(parts)


def comparable_prefix(text: str) -> str:
    """Return the canonical form of a path prefix that may end inside a segment."""
    return comparable_path(f"{text}-").removesuffix("-")


def _comparable_suffix(text: str) -> str:
    return comparable_path(f"/-{text}").removeprefix("/-")


def encoded_path(text: str) -> str:
    """Encode characters that no URI may have as `%XX`, for implementations that compare paths as written."""
    return _FORBIDDEN.sub(_encode, text)


def control_character(text: str) -> str | None:
    """Return the name of the first control character of a text, or None."""
    match = _CONTROL.search(text)
    return f"U+{ord(match[0]):04X}" if match is not None else None


def path_problem(text: str, *, wildcard: bool = False, letters: bool = False) -> tuple[str, str] | None:
    """Return why no request can have such a path, and what to write instead; None if requests can have it.

    `wildcard`: the text may begin or end with `*`. `letters`: unreserved characters may be encoded.
    """
    control = control_character(text)
    if control is not None:
        return f"it has a control character ({control})", "remove it"
    if re.search(r"[?#]", text):
        return "paths are compared without query and fragment", f"write {re.split('[?#]', text)[0]}"
    compared = _comparable_pattern(text) if wildcard else comparable_path(text)
    if _REFUSED.search(text) or _REFUSED.search(compared):
        return "a request with an encoded slash is always refused", "remove the path"
    if compared != _canonical(_with_letters(text) if letters else text):
        return "no request has this form once its path is normalized", f"write {compared}"
    return None


def _comparable_pattern(text: str) -> str:
    if text.startswith("*"):
        return f"*{_comparable_suffix(text[1:])}"
    return f"{comparable_prefix(text[:-1])}*" if text.endswith("*") else comparable_path(text)


# Patterns

_SET = r"\[(?:[A-Za-z0-9_~]|\\[-._~]|[a-z]-[a-z]|[A-Z]-[A-Z]|[0-9]-[0-9])+-?\]"
_LETTER = rf"(?:[-A-Za-z0-9_~/]|\\[-._~/]|\\[dw]|{_SET})(?:[*+?]|\{{[0-9]+(?:,[0-9]*)?\}})?"
_REST = r"(?:\(/\.\*\)\?)?\$?"
_ANYTHING = rf"(?:\.|\[\^/\])[*+](?=/(?![*?{{])|{_REST}$)"
_INSENSITIVE = regex(rf"(?:\(\?s\))?\^?(?:{_LETTER}|{_ANYTHING})*{_REST}")


def is_sensitive(atom: Predicate) -> bool:
    """Return whether an atom may distinguish spellings of one path.

    An atom on the path that a proxy hands on may: expressions read that path. A regular expression for the canonical
    path may match differently at a proxy, unless it consists of letters, and of `.*` or `[^/]*` up to a slash or the
    end.
    """
    if not HANDED_PATHS.isdisjoint(mentions(atom)):
        return True
    if not isinstance(atom, Computed) or atom.pattern is None or atom.pattern[0] != PATH:
        return False
    return _INSENSITIVE.fullmatch(atom.pattern[1]) is None
