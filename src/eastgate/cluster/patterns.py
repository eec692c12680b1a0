"""Regular expressions of manifests, matched with RE2, so that no expression takes long."""

from __future__ import annotations

from eastgate.basics.regexes import as_utf8, compile_re2


def pattern_problem(pattern: str) -> str | None:
    """Return the reason why a text is no RE2 expression, in RE2's words, or None."""
    compiled = compile_re2(as_utf8(pattern))
    return compiled if isinstance(compiled, str) else None


def matches_pattern(pattern: str, text: str) -> bool:
    """Return whether an expression matches the whole text. An invalid expression matches nothing."""
    compiled = compile_re2(as_utf8(pattern))
    return not isinstance(compiled, str) and compiled.fullmatch(as_utf8(text)) is not None


def spans_first_match(pattern: str, text: str) -> bool:
    """Return whether the first match of an expression, with alternatives tried in order, is the whole text."""
    compiled = compile_re2(as_utf8(pattern))
    if isinstance(compiled, str):
        return False
    subject = as_utf8(text)
    match = compiled.search(subject)
    return match is not None and match.span() == (0, len(subject))
