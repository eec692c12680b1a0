"""A whole auth scheme, in the style in which it is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from eastgate.dialects.kuadrant.schemes import codes
from eastgate.dialects.kuadrant.schemes.authorizations import authorizations
from eastgate.dialects.kuadrant.schemes.checking import Checking, record, some
from eastgate.dialects.kuadrant.schemes.conditions import NAMED_PATTERNS, WHEN, no_dangling_references
from eastgate.dialects.kuadrant.schemes.identities import identities
from eastgate.dialects.kuadrant.schemes.metadata import metadata
from eastgate.dialects.kuadrant.schemes.responses import denials, new_response, old_responses
from eastgate.dialects.kuadrant.schemes.styles import Style, in_one_style
from eastgate.dialects.kuadrant.schemes.unsupported import report_unsupported
from eastgate.dialects.kuadrant.validation import host
from eastgate.schema import Anything, Field, ListOf, Record, Text, check
from eastgate.schema.codes import MISSING_FIELD
from eastgate.settings import Settings
from eastgate.sources.node import Node

__all__ = ["LONE_SCHEME", "SCHEME"]

_HOSTS_HELP = "write hosts: [<a host>]"
_SOME_HOST = some(codes.NO_HOST, "a scheme is for at least one host", _HOSTS_HELP)
_HOSTS: ListOf[Settings] = ListOf(Text("a host", host), "a list of hosts", _SOME_HOST)
_COMMON = {"hosts": Field(_HOSTS), "patterns": Field(NAMED_PATTERNS), "when": WHEN}
_UNSUPPORTED = ("callbacks", "notify")
_MISSPELT = {"host": "hosts", "conditions": "when", "pattern": "patterns", "namedPatterns": "patterns"}

_STYLES: dict[Style, Record[Settings]] = {
    Style.OLD: record(
        "an auth scheme",
        {
            **_COMMON,
            "identity": identities(Style.OLD),
            "metadata": metadata(Style.OLD),
            "authorization": authorizations(Style.OLD),
            "response": old_responses(),
            "denyWith": Field(record("denyWith", denials(Style.OLD))),
        },
        unsupported=_UNSUPPORTED,
        misspelt={**_MISSPELT, "identities": "identity", "authn": "identity", "authz": "authorization"},
    ),
    Style.NEW: record(
        "an auth scheme",
        {
            **_COMMON,
            "authentication": identities(Style.NEW),
            "metadata": metadata(Style.NEW),
            "authorization": authorizations(Style.NEW),
            "response": new_response(),
        },
        unsupported=_UNSUPPORTED,
        misspelt={**_MISSPELT, "authn": "authentication", "authz": "authorization"},
    ),
}


def _for_hosts(scheme: Node, to: Checking) -> None:
    """One of several schemes is for some hosts; one alone is for all."""
    if "hosts" not in scheme:
        to.report(MISSING_FIELD, "an auth scheme needs `hosts`", scheme, help=_HOSTS_HELP)


def _in_its_style(scheme: Node, to: Checking) -> None:
    style, kept = in_one_style(scheme, to)
    report_unsupported(kept, to)
    check(_STYLES[style], kept, to)
    no_dangling_references(kept, to)


class _AnyField(Mapping[str, Field[Settings]]):
    """Takes every field: which ones there are depends on the style, and the shape of that style judges them."""

    def __getitem__(self, _key: str) -> Field[Settings]:
        return Field(Anything())

    def __contains__(self, _key: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(name for name in _STYLES[Style.OLD].fields if name not in _UNSUPPORTED)

    def __len__(self) -> int:
        return len(list(iter(self)))


LONE_SCHEME: Record[Settings] = Record("an auth scheme", _AnyField(), rules=(_in_its_style,))
SCHEME: Record[Settings] = Record("an auth scheme", _AnyField(), rules=(_for_hosts, _in_its_style))
