"""Regular expressions of manifests, matched with RE2, so that no expression can take long."""

from __future__ import annotations

from eastgate.basics.regexes import as_utf8, compile_re2


def pattern_problem(pattern: str) -> str | None:
    """Return what keeps a text from being an RE2 expression, in the words of RE2; None if it is one."""
    compiled = compile_re2(as_utf8(pattern))
    return compiled if isinstance(compiled, str) else None


def matches_pattern(pattern: str, text: str) -> bool:
    """Return whether an expression matches all of a text. One that is no expression matches nothing."""
    compiled = compile_re2(as_utf8(pattern))
    return not isinstance(compiled, str) and compiled.fullmatch(as_utf8(text)) is not None


def spans_first_match(pattern: str, text: str) -> bool:
    """Return whether the first match of an expression in a text, with alternatives tried in order, is all of it."""
    compiled = compile_re2(as_utf8(pattern))
    if isinstance(compiled, str):
        return False
    subject = as_utf8(text)
    match = compiled.search(subject)
    return match is not None and match.span() == (0, len(subject))
