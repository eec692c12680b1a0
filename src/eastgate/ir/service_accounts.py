"""The SPIFFE IDs of Kubernetes service accounts: `spiffe://<trust domain>/ns/<namespace>/sa/<name>`.

This is all of Kubernetes that the IR knows, and it is in here only. A rule for every account of a namespace is filed
under the path that their IDs share, so that finding it costs one look-up.
"""

from __future__ import annotations

from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.ir.spiffe import LONGEST, SCHEME, SEGMENT, TRUST_DOMAIN, is_segment

_ACCOUNT = regex(f"{SCHEME}(?P<domain>{TRUST_DOMAIN})/ns/(?P<namespace>{SEGMENT})/sa/(?P<name>{SEGMENT})")


def service_account_id(trust_domain: str, namespace: str, name: str) -> str:
    """Return the SPIFFE ID of a service account."""
    return f"{SCHEME}{trust_domain}/ns/{namespace}/sa/{name}"


def account_of(identity: str) -> tuple[str, str, str] | None:
    """Return trust domain, namespace and name, where an identity has the form of a service account's."""
    match = _ACCOUNT.fullmatch(identity) if len(identity) <= LONGEST else None
    return (match["domain"], match["namespace"], match["name"]) if match is not None else None


def accounts_path_of(identity: str) -> str | None:
    """Return the path that an identity shares with the other accounts of its namespace, if it is an account's.

    For other identities the result is None, or the path of no accounts.
    """
    path, _, name = identity.rpartition("/")
    return path if is_segment(name) is not None and len(identity) <= LONGEST else None


def has_accounts_path(text: str) -> bool:
    """Return whether identities with this prefix may be service accounts of one namespace."""
    return "/sa/" in text


@dataclass(frozen=True, slots=True)
class AccountsOf:
    """Matches every service account of one namespace in one trust domain, and no deeper path."""

    trust_domain: str
    namespace: str

    @property
    def path(self) -> str:
        """Return the part of these identities before `/<name>`."""
        return f"{SCHEME}{self.trust_domain}/ns/{self.namespace}/sa"

    @property
    def prefix(self) -> str:
        """Return the common prefix of these identities."""
        return f"{self.path}/"

    def contains(self, value: str | int) -> bool:
        """Return whether the value is the identity of such an account."""
        return isinstance(value, str) and (account_of(value) or ())[:2] == (self.trust_domain, self.namespace)

    def __str__(self) -> str:
        return f"any service account of namespace {self.namespace} in {self.trust_domain}"


@dataclass(frozen=True, slots=True)
class AnyAccount:
    """Matches every service account of one trust domain."""

    trust_domain: str

    def contains(self, value: str | int) -> bool:
        """Return whether the value is the identity of such an account."""
        return isinstance(value, str) and (account_of(value) or ())[:1] == (self.trust_domain,)

    def __str__(self) -> str:
        return f"any service account in {self.trust_domain}"
