"""SPIFFE IDs: their grammar and their parts. All code that reads, compares or matches one uses this grammar.

The form is stricter than the SPIFFE standard, and stricter than the CEL expression of GEP-3779, which accepts
`spiffe://td`. An identity in a policy is compared exactly. So an identity that no workload can have is reported as a
mistake, instead of being accepted and never matching.
"""

from __future__ import annotations

import re

from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex

SCHEME = "spiffe://"
LONGEST = 2048  # bytes

# These regular expressions mean the same to RE2, Python and JavaScript.
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
    """Return why a text is not a valid trust domain, or None if it is valid."""
    if not text:
        return "the trust domain is empty"
    if not is_trust_domain(text):
        return f"the trust domain {text!r} may hold only lower-case letters, digits, '.', '_' and '-'"
    return None


def spiffe_problem(text: str) -> str | None:
    """Return why a text is not a full SPIFFE ID, or None if it is one."""
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


# The SPIFFE IDs of Kubernetes service accounts: `spiffe://<trust domain>/ns/<namespace>/sa/<name>`.
#
# This is the only part of the IR that knows Kubernetes. A rule for every account of a namespace is filed under the
# common path of their IDs, so that an index finds it with one look-up.


_ACCOUNT = regex(f"{SCHEME}(?P<domain>{TRUST_DOMAIN})/ns/(?P<namespace>{SEGMENT})/sa/(?P<name>{SEGMENT})")


def service_account_id(trust_domain: str, namespace: str, name: str) -> str:
    """Return the SPIFFE ID of a service account."""
    return f"{SCHEME}{trust_domain}/ns/{namespace}/sa/{name}"


def account_of(identity: str) -> tuple[str, str, str] | None:
    """Return trust domain, namespace and name of a service account, or None for any other identity."""
    match = _ACCOUNT.fullmatch(identity) if len(identity) <= LONGEST else None
    return (match["domain"], match["namespace"], match["name"]) if match is not None else None


def accounts_path_of(identity: str) -> str | None:
    """Return the common path of the service accounts of a namespace, for the identity of one of them.

    For other identities the result is None, or a path that no service account has.
    """
    path, _, name = identity.rpartition("/")
    return path if is_segment(name) is not None and len(identity) <= LONGEST else None


def has_accounts_path(text: str) -> bool:
    """Return whether identities with this prefix may be service accounts of one namespace."""
    return "/sa/" in text


@dataclass(frozen=True, slots=True)
class AccountsOf:
    """Matches every service account of one namespace in one trust domain, but no identity with a longer path."""

    trust_domain: str
    namespace: str

    @property
    def path(self) -> str:
        """Return the part of the identities before `/<name>`."""
        return f"{SCHEME}{self.trust_domain}/ns/{self.namespace}/sa"

    @property
    def prefix(self) -> str:
        """Return the common prefix of the identities."""
        return f"{self.path}/"

    def contains(self, value: str | int) -> bool:
        """Return whether the value is the identity of one of these accounts."""
        return isinstance(value, str) and (account_of(value) or ())[:2] == (self.trust_domain, self.namespace)

    def __str__(self) -> str:
        return f"any service account of namespace {self.namespace} in {self.trust_domain}"


@dataclass(frozen=True, slots=True)
class AnyAccount:
    """Matches every service account of one trust domain."""

    trust_domain: str

    def contains(self, value: str | int) -> bool:
        """Return whether the value is the identity of one of these accounts."""
        return isinstance(value, str) and (account_of(value) or ())[:1] == (self.trust_domain,)

    def __str__(self) -> str:
        return f"any service account in {self.trust_domain}"
