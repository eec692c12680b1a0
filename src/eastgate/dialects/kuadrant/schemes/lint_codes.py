"""Codes of lint's findings about auth schemes."""

from eastgate.diagnostics import Code, Severity

READING_AUTHORINO_COMPAT = Code(
    "EG6045",
    "the two readings of authorinoCompat differ here",
    "A `when` that errs denies, or skips what it guards as Authorino does; the setting `authorinoCompat` decides.",
    Severity.INFO,
)
SET_IN_ANY = Code(
    "EG6070",
    "set of patterns in `any`",
    "A `patternRef` in `any` contributes the patterns of its set one by one, as Authorino flattens it: one of them is "
    "enough, where elsewhere all of them must hold.",
    Severity.WARNING,
)
