"""Auth schemes in today's kinds: the whole `spec` of an AuthConfig, and the `rules` of an AuthPolicy."""

from __future__ import annotations

from eastgate.dialects.kuadrant.hosts import index_host_problem
from eastgate.dialects.kuadrant.schemes import codes
from eastgate.dialects.kuadrant.schemes.authorizations import authorizations
from eastgate.dialects.kuadrant.schemes.conditions import PATTERN_SETS, WHEN, no_dangling_references
from eastgate.dialects.kuadrant.schemes.identities import identities
from eastgate.dialects.kuadrant.schemes.metadata import callbacks, identity_sources, metadata
from eastgate.dialects.kuadrant.schemes.responses import denials, new_response, old_responses
from eastgate.dialects.kuadrant.schemes.styles import Style
from eastgate.dialects.kuadrant.schemes.unsupported import report_removed
from eastgate.dialects.kuadrant.schemes.validation import Checking, record
from eastgate.reading.manifests.node import Node
from eastgate.reading.manifests.shapes import Field, ListOf, Record, Text, not_empty, quoted
from eastgate.settings import Settings

_HOSTS_HELP = "write hosts: [<a host>]"


def _host(node: Node, to: Checking) -> None:
    """Require a host, possibly with a wildcard and a port. Letter case counts, and may be upper or lower."""
    problem = index_host_problem(node.text)
    if problem is not None:
        reason, way_out = problem
        to.report(codes.HOST, f"{quoted(node.text)} is not a host: {reason}", node, help=way_out)


_AROUND: dict[str, Field[Settings]] = {
    "hosts": Field(
        ListOf(
            Text("a host", _host),
            "a list of hosts",
            not_empty(codes.NO_HOST, "an AuthConfig needs at least one host", _HOSTS_HELP),
        ),
        required=True,
        help=_HOSTS_HELP,
        about="The hosts of the AuthConfig: a DNS name, `*.` and a DNS name, or `*`; perhaps with a port.",
    ),
    "patterns": Field(PATTERN_SETS, about="Sets of patterns by name, for `patternRef` elsewhere."),
    "when": WHEN,
}
_MISSPELT = {"host": "hosts", "conditions": "when", "pattern": "patterns", "namedPatterns": "patterns"}
_SYNONYMS = {"authn": "authentication", "authz": "authorization", "callback": "callbacks"}
_BETA1_WORDS = {
    "identity": "write it as a mapping: authentication: {<name>: {..}}",
    "denyWith": "write response: {unauthenticated: {..}, unauthorized: {..}}",
}


def _sections(metadata_field: str) -> dict[str, Field[Settings]]:
    return {
        "authentication": identities(Style.NEW, complete=True),
        "metadata": metadata(Style.NEW, complete=True),
        "authorization": authorizations(Style.NEW, complete=True),
        "response": new_response(metadata_field, complete=True),
        "callbacks": callbacks(Style.NEW),
    }


AUTH_CONFIG_SPEC: Record[Settings] = record(
    "spec",
    {**_AROUND, **_sections("dynamicMetadata")},
    report_removed,
    no_dangling_references,
    identity_sources,
    renamed=_BETA1_WORDS,
    misspelt={**_MISSPELT, **_SYNONYMS},
)
"""The `spec` of an AuthConfig v1beta2 or v1beta3."""

AUTH_CONFIG_SPEC_V1BETA1: Record[Settings] = record(
    "spec",
    {
        **_AROUND,
        "identity": identities(Style.OLD, complete=True),
        "metadata": metadata(Style.OLD, complete=True),
        "authorization": authorizations(Style.OLD, complete=True),
        "response": old_responses(complete=True),
        "denyWith": Field(record("denyWith", denials(Style.OLD))),
        "callbacks": callbacks(Style.OLD),
    },
    report_removed,
    no_dangling_references,
    identity_sources,
    renamed={"authentication": "write it as a list: identity: [{name: .., ..}]"},
    misspelt={**_MISSPELT, "identities": "identity", "authn": "identity", "authz": "authorization"},
)
"""The `spec` of an AuthConfig v1beta1."""

RULES: Record[Settings] = record(
    "rules",
    _sections("filters"),
    report_removed,
    renamed={
        **_BETA1_WORDS,
        "hosts": "remove it: the hosts are those of the target",
        "patterns": "write it beside `rules`",
        "when": "write it beside `rules`",
    },
    misspelt=_SYNONYMS,
)
"""The `rules` of an AuthPolicy. A `patternRef` in them may name a set of another policy."""
