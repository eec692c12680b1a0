"""An auth scheme, field by field, in either style."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from eastgate.dialects.kuadrant.schemes import codes
from eastgate.dialects.kuadrant.schemes.authorizations import authorizations
from eastgate.dialects.kuadrant.schemes.conditions import NAMED_PATTERNS, WHEN, no_dangling_references
from eastgate.dialects.kuadrant.schemes.identities import identities
from eastgate.dialects.kuadrant.schemes.metadata import metadata
from eastgate.dialects.kuadrant.schemes.responses import denials, new_response, old_responses
from eastgate.dialects.kuadrant.schemes.styles import Style, in_one_style
from eastgate.dialects.kuadrant.schemes.unsupported import report_unsupported
from eastgate.dialects.kuadrant.schemes.validation import NOT_EVALUATED, Checking, host, record
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Anything, Cel, Field, ListOf, Record, Text, check, constraint, not_empty
from eastgate.reading.manifests.shapes.codes import MISSING_FIELD
from eastgate.settings import Settings

_HOSTS_HELP = "write hosts: [<a host>]"
_SOME_HOST = not_empty(codes.NO_HOST, "a scheme needs at least one host", _HOSTS_HELP)
_HOSTS: Field[Settings] = Field(
    ListOf(Text("a host", host, served=255), "a list of hosts", _SOME_HOST, served=24),
    help=_HOSTS_HELP,
    about="The hosts of the scheme: a DNS name, `*.` and a DNS name, or `*`.",
)
_PATTERNS: Field[Settings] = Field(
    NAMED_PATTERNS, about="Sets of conditions by name, for `patternRef` elsewhere in the scheme."
)
_COMMON = {"hosts": _HOSTS, "patterns": _PATTERNS, "when": WHEN}
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
    """Require the hosts of one of several schemes. A single scheme is for all hosts."""
    if "hosts" not in scheme:
        to.report(MISSING_FIELD, "an auth scheme needs `hosts`", scheme, help=_HOSTS_HELP)


def _in_its_style(scheme: Node, to: Checking) -> None:
    style, kept = in_one_style(scheme, to)
    report_unsupported(kept, to)
    check(_STYLES[style], kept, to)
    no_dangling_references(kept, to)


class _AnyField(Mapping[str, Field[Settings]]):
    """Accepts all fields. The shape of the style checks which ones are known."""

    def __getitem__(self, _key: str) -> Field[Settings]:
        return Field(Anything())

    def __contains__(self, _key: object) -> bool:
        return True

    def __iter__(self) -> Iterator[str]:
        return iter(name for name in _STYLES[Style.OLD].fields if name not in _UNSUPPORTED)

    def __len__(self) -> int:
        return len(list(iter(self)))


def _about(field: Field[Settings], about: str) -> Field[Settings]:
    return replace(field, about=about)


def _in_either_style(about: str) -> Field[Settings]:
    """Make a section that is a list in one style and a mapping in the other. No schema has a type for that."""
    return Field(Anything(), about=about)


@constraint(
    Cel(
        "!has(self.authentication) || !(has(self.identity) || has(self.denyWith))",
        "`identity` and `denyWith` are fields of v1beta1, and `authentication` is a field of v1beta2",
    )
)
def _words_of_one_style(scheme: Node, to: Checking) -> None:
    in_one_style(scheme, to)


_OLD, _NEW = _STYLES[Style.OLD].fields, _STYLES[Style.NEW].fields
_SERVED_ALONE: Record[Settings] = Record(
    "an auth scheme",
    {
        **_COMMON,
        "when": _about(WHEN, "Conditions of the whole scheme: if they do not hold, the request is allowed."),
        "identity": _about(_OLD["identity"], "As in v1beta1: the methods to recognize a caller. ANY is enough."),
        "authentication": _about(
            _NEW["authentication"], "As in v1beta2: the methods to recognize a caller, by name. ANY is enough."
        ),
        "metadata": _in_either_style("Metadata to fetch before the authorization: a list, or a mapping by name."),
        "authorization": _in_either_style("The checks that must ALL allow: a list, or a mapping by name."),
        "response": _in_either_style("The responses to the application, or to a denied client: a list, or a mapping."),
        "denyWith": _about(_OLD["denyWith"], "As in v1beta1: the responses to a denied client."),
        **{name: Field(Anything(), about=NOT_EVALUATED, refused=True) for name in _UNSUPPORTED},
    },
    rules=(_words_of_one_style,),
    about="Authentication and authorization of callers to some hosts, as in Authorino's AuthConfig.",
)
_SERVED = replace(_SERVED_ALONE, fields={**_SERVED_ALONE.fields, "hosts": replace(_HOSTS, required=True)})
LONE_SCHEME: Record[Settings] = Record("an auth scheme", _AnyField(), rules=(_in_its_style,), served=_SERVED_ALONE)
SCHEME: Record[Settings] = Record("an auth scheme", _AnyField(), rules=(_for_hosts, _in_its_style), served=_SERVED)
