"""Caller cells: each cell contains all callers that no rule distinguishes.

A caller is known by its SPIFFE ID, and its Linkerd name follows from it. Each identity that a rule or another source
names has its own cell. All others are in a few cells: the other accounts of a namespace, the other accounts of the
trust domain, other identities, and anonymous callers. If rules read names that follow from no SPIFFE ID (DNS names of
other meshes), there are cells for these names too.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import ClassVar

from eastgate.basics.records import dataclass
from eastgate.ir.spiffe import SCHEME, account_of, service_account_id


class CallerKind(StrEnum):
    """The kinds of callers, in the order of tables: exact callers, groups, all others."""

    SERVICE_ACCOUNT = "serviceAccount"
    SPIFFE = "spiffe"
    NAME = "name"
    NAMESPACE = "namespace"
    SUFFIX = "suffix"
    OTHER_ACCOUNT = "otherServiceAccount"
    OTHER_SPIFFE = "otherSpiffe"
    OTHER_NAME = "otherName"
    NONE = "none"


class CallerCell:
    """A cell of callers. Its kind, name and id depend on the trust domain of the mesh."""

    __slots__ = ()
    kind: ClassVar[CallerKind]

    @property
    def stem(self) -> str:
        """Return the common prefix of the SPIFFE IDs of its callers."""
        return SCHEME

    def kind_in(self, _domain: str, /) -> CallerKind:
        """Return the kind of the cell."""
        return self.kind

    def account_in(self, _domain: str, /) -> tuple[str, str] | None:
        """Return namespace and name of its accounts in a trust domain; empty texts for accounts that no cell names."""
        return None

    def name_in(self, _domain: str, /) -> str:
        """Return the name of the cell, unique for its kind."""
        return ""

    def id_in(self, _domain: str, /) -> str:
        """Return the ID of the cell in graphs and comparisons."""
        return str(self)

    def example(self, fresh: str, name: str | None = None, /) -> tuple[str | None, str | None]:
        """Return the SPIFFE ID of a caller of the cell, and its Linkerd name if the name does not follow from the ID.

        `fresh` is a name that no caller has. `name` is the end of the SPIFFE ID, if the cell leaves that open.
        """
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class IdentityCell(CallerCell):
    """The caller with one SPIFFE ID."""

    identity: str

    def __str__(self) -> str:
        return self.identity

    def kind_in(self, domain: str, /) -> CallerKind:
        return CallerKind.SPIFFE if self.account_in(domain) is None else CallerKind.SERVICE_ACCOUNT

    def account_in(self, domain: str, /) -> tuple[str, str] | None:
        account = account_of(self.identity)
        return account[1:] if account is not None and account[0] == domain else None

    def name_in(self, domain: str, /) -> str:
        account = self.account_in(domain)
        return self.identity if account is None else "/".join(account)

    def id_in(self, domain: str, /) -> str:
        account = self.account_in(domain)
        return self.identity if account is None else f"sa:{'/'.join(account)}"

    def example(self, _fresh: str, _name: str | None = None, /) -> tuple[str | None, str | None]:
        return self.identity, None


@dataclass(frozen=True, slots=True)
class AccountsIn(CallerCell):
    """All service accounts of a namespace without their own cells."""

    domain: str
    namespace: str

    def __str__(self) -> str:
        return f"{self.stem}*"

    @property
    def stem(self) -> str:
        return service_account_id(self.domain, self.namespace, "")

    def kind_in(self, domain: str, /) -> CallerKind:
        return CallerKind.NAMESPACE if self.domain == domain else CallerKind.SUFFIX

    def account_in(self, domain: str, /) -> tuple[str, str] | None:
        return (self.namespace, "") if self.domain == domain else None

    def name_in(self, domain: str, /) -> str:
        return self.namespace if self.domain == domain else str(self)

    def id_in(self, domain: str, /) -> str:
        return f"others:{self.namespace}" if self.domain == domain else str(self)

    def example(self, fresh: str, name: str | None = None, /) -> tuple[str | None, str | None]:
        return f"{self.stem}{name or fresh}", None


@dataclass(frozen=True, slots=True)
class OtherAccounts(CallerCell):
    """All service accounts of the trust domain in namespaces without their own cells."""

    domain: str
    kind = CallerKind.OTHER_ACCOUNT

    def __str__(self) -> str:
        return service_account_id(self.domain, "*", "*")

    @property
    def stem(self) -> str:
        return f"{SCHEME}{self.domain}/ns/"

    def account_in(self, domain: str, /) -> tuple[str, str] | None:
        return ("", "") if self.domain == domain else None

    def id_in(self, _domain: str, /) -> str:
        return "others"

    def example(self, fresh: str, name: str | None = None, /) -> tuple[str | None, str | None]:
        return service_account_id(self.domain, fresh, name or fresh), None


@dataclass(frozen=True, slots=True)
class OtherIdentities(CallerCell):
    """All other callers with a SPIFFE ID."""

    kind = CallerKind.OTHER_SPIFFE

    def __str__(self) -> str:
        return f"{SCHEME}*"

    def id_in(self, _domain: str, /) -> str:
        return "outside"

    def example(self, fresh: str, name: str | None = None, /) -> tuple[str | None, str | None]:
        return f"{SCHEME}{fresh}/{name or fresh}", None


@dataclass(frozen=True, slots=True)
class Name(CallerCell):
    """The caller with one name in the mesh: without a SPIFFE ID, or with a SPIFFE ID that is its Linkerd name."""

    name: str
    kind = CallerKind.NAME

    @property
    def identity(self) -> str | None:
        """Return the SPIFFE ID of the caller, if it has one."""
        return self.name if self.name.startswith(SCHEME) else None

    def __str__(self) -> str:
        return self.name

    def name_in(self, _domain: str, /) -> str:
        return self.name

    def id_in(self, _domain: str, /) -> str:
        return self.identity or f"id:{self.name}"

    def example(self, _fresh: str, _name: str | None = None, /) -> tuple[str | None, str | None]:
        return self.identity, self.name


@dataclass(frozen=True, slots=True)
class NamesUnder(CallerCell):
    """All callers without a SPIFFE ID whose name in the mesh has one suffix, and that are in no narrower cell."""

    suffix: str
    kind = CallerKind.SUFFIX

    def __str__(self) -> str:
        return f"*{self.suffix}"

    def name_in(self, _domain: str, /) -> str:
        return str(self)

    def id_in(self, _domain: str, /) -> str:
        return f"id:{self}"

    def example(self, fresh: str, _name: str | None = None, /) -> tuple[str | None, str | None]:
        return None, fresh + self.suffix


@dataclass(frozen=True, slots=True)
class OtherNames(CallerCell):
    """All other callers with a name in the mesh and no SPIFFE ID."""

    kind = CallerKind.OTHER_NAME

    def __str__(self) -> str:
        return "*"

    def id_in(self, _domain: str, /) -> str:
        return f"id:{self}"

    def example(self, fresh: str, _name: str | None = None, /) -> tuple[str | None, str | None]:
        return None, fresh


@dataclass(frozen=True, slots=True)
class AnonymousCell(CallerCell):
    """An anonymous caller."""

    kind = CallerKind.NONE

    def __str__(self) -> str:
        return "none"

    def id_in(self, _domain: str, /) -> str:
        return "anonymous"

    def example(self, _fresh: str, _name: str | None = None, /) -> tuple[str | None, str | None]:
        return None, None


def cells_around(identity: str | None, domain: str) -> Iterator[CallerCell]:
    """Yield the cells that a caller may be in, the narrowest first. None: the caller is anonymous."""
    if identity is None:
        yield AnonymousCell()
        return
    yield IdentityCell(identity)
    account = account_of(identity)
    if account is not None:
        yield AccountsIn(account[0], account[1])
        if account[0] == domain:
            yield OtherAccounts(domain)
    yield OtherIdentities()
