"""Who a workload is: SPIFFE identities, and what may be written as one.

The form is stricter than the SPIFFE standard and stricter than the CEL expression of GEP-3779, which
lets `spiffe://td` through: an identity in a policy is compared exactly, so anything that no workload
can have is a mistake in the policy, not an identity that never matches.
"""

from __future__ import annotations

import re

__all__ = ["account_of", "service_account_id", "spiffe_problem", "trust_domain_problem"]

_SCHEME = "spiffe://"
_LONGEST = 2048  # bytes
_TRUST_DOMAIN = re.compile(r"[a-z0-9._-]+")
_SEGMENT = re.compile(r"[A-Za-z0-9._-]+")


def service_account_id(trust_domain: str, namespace: str, name: str) -> str:
    """The SPIFFE ID of a Kubernetes service account."""
    return f"{_SCHEME}{trust_domain}/ns/{namespace}/sa/{name}"


def account_of(identity: str) -> tuple[str, str, str] | None:
    """Trust domain, namespace and name, where the identity has the form of a service account's."""
    stem, _, name = identity.rpartition("/sa/")
    before, _, namespace = stem.rpartition("/ns/")
    domain = before.removeprefix(_SCHEME)
    whole = before.startswith(_SCHEME) and all(part and "/" not in part for part in (domain, namespace, name))
    return (domain, namespace, name) if whole else None


def trust_domain_problem(text: str) -> str | None:
    """What keeps a text from being a trust domain; None where nothing does."""
    if not text:
        return "the trust domain is empty"
    if not _TRUST_DOMAIN.fullmatch(text):
        return f"the trust domain {text!r} may hold only lower-case letters, digits, '.', '_' and '-'"
    return None


def spiffe_problem(text: str) -> str | None:
    """What keeps a text from being a full SPIFFE ID; None where nothing does."""
    if not text.startswith(_SCHEME):
        return f"it does not start with {_SCHEME}"
    if len(text.encode("utf-8", "surrogatepass")) > _LONGEST:
        return f"it is longer than {_LONGEST} bytes"
    if "?" in text:
        return "it has a query ('?')"
    if "#" in text:
        return "it has a fragment ('#')"
    trust_domain, slash, path = text.removeprefix(_SCHEME).partition("/")
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
        if not _SEGMENT.fullmatch(segment):
            return f"the path segment {segment!r} may hold only letters, digits, '.', '_' and '-'"
    return None
