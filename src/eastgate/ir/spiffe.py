"""SPIFFE IDs: their grammar and their parts. All code that reads, compares or matches one uses this grammar.

The form is stricter than the SPIFFE standard and stricter than the CEL expression of GEP-3779, which lets `spiffe://td`
through: an identity in a policy is compared exactly, so anything that no workload can have is a mistake in the policy,
not an identity that never matches.
"""

from __future__ import annotations

import re

from eastgate.basics.regexes import regex

SCHEME = "spiffe://"
LONGEST = 2048  # bytes

# As expressions, they mean the same to RE2, to Python and to JavaScript.
TRUST_DOMAIN = "[a-z0-9._-]+"
SEGMENT = r"([A-Za-z0-9_-]|\.[A-Za-z0-9_-]|\.\.[A-Za-z0-9._-])[A-Za-z0-9._-]*"  # neither . nor ..
SPIFFE_ID = f"{SCHEME}{TRUST_DOMAIN}(/{SEGMENT})+"

is_trust_domain = re.compile(TRUST_DOMAIN).fullmatch
is_segment = re.compile(SEGMENT).fullmatch
_CHARACTERS = regex("[A-Za-z0-9._-]+")


def trust_domain_of(identity: str) -> str:
    """Return the trust domain of a SPIFFE ID."""
    return identity.removeprefix(SCHEME).partition("/")[0]


def trust_domain_problem(text: str) -> str | None:
    """Return why a text is no trust domain; None where it is one."""
    if not text:
        return "the trust domain is empty"
    if not is_trust_domain(text):
        return f"the trust domain {text!r} may hold only lower-case letters, digits, '.', '_' and '-'"
    return None


def spiffe_problem(text: str) -> str | None:
    """Return why a text is no full SPIFFE ID; None where it is one."""
    if not text.startswith(SCHEME):
        return f"it does not start with {SCHEME}"
    if len(text.encode("utf-8", "surrogatepass")) > LONGEST:
        return f"it is longer than {LONGEST} bytes"
    if "?" in text:
        return "it has a query ('?')"
    if "#" in text:
        return "it has a fragment ('#')"
    trust_domain, slash, path = text.removeprefix(SCHEME).partition("/")
    problem = trust_domain_problem(trust_domain)
    if problem:
        return problem
    if not slash or not path:
        return "it names a trust domain and no workload: a path is missing after it"
    return _path_problem(path)


def _path_problem(path: str) -> str | None:
    if path.endswith("/"):
        return "it ends with a slash"
    for segment in path.split("/"):
        if not segment:
            return "it has an empty path segment ('//')"
        if segment in (".", ".."):
            return f"it has a {segment!r} path segment"
        if not _CHARACTERS.fullmatch(segment):
            return f"the path segment {segment!r} may hold only letters, digits, '.', '_' and '-'"
    return None
