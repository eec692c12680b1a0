"""The two names of a caller: its SPIFFE ID and its Linkerd name.

The Linkerd name of a service account of the mesh's trust domain is
`<account>.<namespace>.serviceaccount.identity.<control plane>.<domain>`. For every other identity it is the SPIFFE ID.
No other module of Eastgate parses such names.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from eastgate.ir.spiffe import SCHEME, account_of, service_account_id

_MARK = ".serviceaccount.identity."


class MeshNaming(Protocol):
    """The names of a mesh, from its settings."""

    @property
    def trust_domain(self) -> str:
        """Return the trust domain of the mesh."""

    def mesh_name(self, namespace: str, account: str) -> str:
        """Return Linkerd's name of a service account."""


class AccountName(NamedTuple):
    """The parts of a service account's Linkerd name. `tail` is the part after the mark."""

    account: str
    namespace: str
    tail: str


def parse_account_name(name: str) -> AccountName | None:
    """Return the parts of a service account's Linkerd name in any mesh, or None for another name."""
    head, mark, tail = name.partition(_MARK)
    account, dot, namespace = head.rpartition(".")
    return AccountName(account, namespace, tail) if mark and dot and account and namespace else None


class MeshNames:
    """The names of identities in one mesh."""

    def __init__(self, naming: MeshNaming) -> None:
        self.trust_domain = naming.trust_domain
        self.tail = naming.mesh_name("", "")[1:]  # the part of a name after account and namespace
        self._mesh_name = naming.mesh_name

    def account(self, identity: str) -> tuple[str, str] | None:
        """Return namespace and name of a service account of the trust domain, or None for another identity."""
        account = account_of(identity)
        return account[1:] if account is not None and account[0] == self.trust_domain else None

    def mesh_name(self, identity: str) -> str:
        """Return the Linkerd mesh name of an identity."""
        account = self.account(identity)
        return self._mesh_name(*account) if account is not None else identity

    def identity(self, mesh_name: str) -> str | None:
        """Return the SPIFFE ID for a Linkerd mesh name, or None."""
        if mesh_name.startswith(SCHEME):
            return mesh_name if self.account(mesh_name) is None else None
        parts = self.parts(mesh_name)
        return service_account_id(self.trust_domain, parts[1], parts[0]) if parts and parts[0] and parts[1] else None

    def parts(self, name: str) -> tuple[str, str] | None:
        """Return the account and namespace parts of a name, or of the end of one; None if the tail differs."""
        if not name.endswith(self.tail):
            return None
        account, _, namespace = name.removesuffix(self.tail).rpartition(".")
        return account, namespace
