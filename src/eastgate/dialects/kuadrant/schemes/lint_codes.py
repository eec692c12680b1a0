"""Codes of lint's findings about auth schemes."""

from eastgate.basics.diagnostics import Code, Severity

READING_AUTHORINO_COMPAT = Code(
    "EG6045",
    "the two readings of authorinoCompat differ here",
    "A `when` that errs denies, or skips the guarded part as in Authorino. The setting `authorinoCompat` decides.",
    Severity.INFO,
)
RULE_RESPELT = Code(
    "EG6071",
    "rule that another spelling of a path evades",
    "Authorino compares a path as a text, and an application decodes it: `/users/%40me` is `/users/@me` to an "
    "application, but not to Authorino. Eastgate refuses such a path with 400 if an expression reads it. Authorino "
    "does not, and neither do offline answers with `dataPlane: native` and `authorinoCompat: true`.",
    Severity.ERROR,
)
SET_IN_ANY = Code(
    "EG6070",
    "set of patterns in `any`",
    "A `patternRef` in `any` adds the patterns of its set one by one, as in Authorino. So one of them is enough. "
    "Elsewhere all patterns of a set must hold.",
    Severity.WARNING,
)
