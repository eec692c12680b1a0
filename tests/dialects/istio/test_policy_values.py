"""The strings of rules, as istiod configures Envoy to match them; trust domains, MeshConfig, providers, paths."""

from __future__ import annotations

import pytest

from eastgate.cluster import ConfigMap, World
from eastgate.dialects.istio.attributes import LOWERED_AUTHORITY, compared_path
from eastgate.dialects.istio.claims import ISSUER, SUBJECT, claim_at, claim_path
from eastgate.dialects.istio.derived import HttpForms
from eastgate.dialects.istio.matching import (
    match_identities,
    match_namespaces,
    match_request_principals,
    match_service_accounts,
    match_trust_domains,
)
from eastgate.dialects.istio.mesh_config import (
    expand_trust_domains,
    mesh_settings,
    mesh_sources,
    read_providers,
    replace_trust_domains,
)
from eastgate.dialects.istio.settings import PathNormalization
from eastgate.ir import And, Computed, Is, Known, Not, Or, Predicate, RawRequest
from eastgate.ir.attributes import AUTHORITY, IDENTITY, REFUSED_PATH, SENT_PATH, Attribute
from eastgate.settings import Settings

X = "spiffe://cluster.local/ns/a/sa/x"


def holds(predicate: Predicate, values: dict[Attribute, Known]) -> bool:
    match predicate:
        case Is():
            return predicate.accepts(values.get(predicate.attribute))
        case Computed():
            return predicate.holds(values)
        case Not(part):
            return not holds(part, values)
        case And(parts):
            return all(holds(part, values) for part in parts)
        case Or(parts):
            return any(holds(part, values) for part in parts)


IDENTITIES = [
    (match_identities(["cluster.local/ns/a/sa/x"]), X, True),
    (match_identities(["cluster.local/ns/a/sa/*"]), X, True),
    (match_identities(["*/ns/a/sa/x"]), X, True),
    (match_identities(["*/ns/a/sa/x"]), "spiffe://ns/a/sa/x", False),  # a suffix must not overlap the scheme
    (match_identities(["cluster.local/ns/*/sa/x"]), X, False),
    (match_identities(["*"]), X, True),
    (match_identities(["*"]), None, False),
    (match_identities([X]), X, False),
    (match_namespaces(["a"]), X, True),
    (match_namespaces(["a*b"]), "spiffe://td/ns/a1b/sa/x", True),
    (match_namespaces(["a"]), "spiffe://td/ns/a", False),
    (match_namespaces(["a.c"]), "spiffe://td/ns/abc/sa/x", False),
    (match_service_accounts(["x"], "a"), X, True),
    (match_service_accounts(["x"], "b"), X, False),
    (match_service_accounts(["a/x"], "b"), "spiffe://td/ns/a/cell/1/sa/x/y", True),
    (match_service_accounts(["a/x"], "b"), "spiffe://td/ns/a/sa/xy", False),
    (match_trust_domains(["cluster.local"]), X, True),
    (match_trust_domains(["cluster"]), X, False),
    (match_trust_domains(["*.local"]), X, True),
    (match_trust_domains(["clu*"]), X, True),
    (match_trust_domains(["*a"]), X, False),  # a pattern does not match beyond the trust domain
]


@pytest.mark.parametrize(
    ("predicate", "identity", "expected"), IDENTITIES, ids=[str(n) for n in range(len(IDENTITIES))]
)
def test_identities_are_matched_to_the_letter(predicate: Predicate, identity: str | None, expected: bool) -> None:
    assert holds(predicate, {IDENTITY: identity}) is expected


@pytest.mark.parametrize(
    ("text", "issuer", "subject", "expected"),
    [
        ("*", "i", "s", True),
        ("*", "i", "", False),
        ("https://i/x/s", "https://i/x", "s", True),
        ("i/*", "i", "s", True),
        ("i/*", "i", None, False),
        ("i/a*", "i", "ab", True),
        ("*/s", "i", "s", True),
        ("*x/s", "ix", "s", True),
        ("*x", "i", "sx", True),
        ("i*", "ix", "s", True),
        ("i", "i", "s", False),
        ("i", "i", "", True),
        ("i/*a*", "i", "*ab", True),
    ],
)
def test_request_principals_are_split_at_the_last_slash(
    text: str, issuer: str, subject: str | None, expected: bool
) -> None:
    assert holds(match_request_principals([text]), {ISSUER: issuer, SUBJECT: subject}) is expected


def test_claims_have_paths() -> None:
    assert claim_path(claim_at(["a", "b"])) == ("a", "b")
    assert claim_path(ISSUER) == ("iss",)


BUNDLE = ["td1", "td2", "old-td"]


@pytest.mark.parametrize(
    ("principal", "expected"),
    [
        ("td1/ns/a/sa/x", ["td1/ns/a/sa/x", "td2/ns/a/sa/x", "old-td/ns/a/sa/x"]),
        ("cluster.local/ns/a/sa/x", ["td1/ns/a/sa/x", "td2/ns/a/sa/x", "old-td/ns/a/sa/x"]),
        ("*-td/ns/a/sa/x", ["td1/ns/a/sa/x", "td2/ns/a/sa/x", "*-td/ns/a/sa/x"]),
        ("*/ns/a/sa/x", ["*/ns/a/sa/x"]),
        ("td1/ns/a/*", ["td1/ns/a/*"]),
        ("other/ns/a/sa/x", ["other/ns/a/sa/x"]),
    ],
)
def test_principals_of_the_mesh_are_those_of_all_its_trust_domains(principal: str, expected: list[str]) -> None:
    assert replace_trust_domains([principal], BUNDLE) == expected


def test_only_exact_trust_domains_are_expanded() -> None:
    assert expand_trust_domains(["td2", "cluster.local", "td*"], BUNDLE) == [*BUNDLE, "cluster.local", "td*"]


# MeshConfig


def world(mesh: str) -> World:
    return World.of([ConfigMap("istio-system", "istio", {"mesh": mesh})])


def test_the_config_map_counts_more_than_defaults_and_less_than_what_is_set() -> None:
    declared = world("trustDomain: td\ntrustDomainAliases: [old]\npathNormalization: {normalization: NONE}\n")
    mesh = mesh_settings(Settings(), declared)
    assert (mesh.trust_domains, mesh.path_normalization) == (("td", "old"), PathNormalization.NONE)
    chosen = {"trustDomain": "mine", "trustDomainAliases": "a,b", "pathNormalization": "merge-slashes"}
    mesh = mesh_settings(Settings.from_mapping(chosen), declared)
    assert (mesh.trust_domains, mesh.path_normalization) == (("mine", "a", "b"), PathNormalization.MERGE_SLASHES)
    assert Settings.from_mapping({**chosen, "trustDomainAliases": ["a", "b"]}) == Settings.from_mapping(chosen)


@pytest.mark.parametrize("mesh", ["a: [", "- a", "trustDomain: 1", "trustDomainAliases: {}", "pathNormalization: x"])
def test_a_mesh_config_that_cannot_be_read_has_problems(mesh: str) -> None:
    (source,) = mesh_sources(Settings(), World.of([ConfigMap("istio-system", "istio", {"mesh": mesh})]))
    assert source.written.problems


GRPC = {"service": "authz.auth.svc.cluster.local", "port": 9000}
BAD = [
    {"name": "e", "envoyExtAuthzGrpc": {**GRPC, "port": 0}},
    {"name": "e", "envoyExtAuthzGrpc": {"port": 9000}},
    {"name": "E", "envoyExtAuthzGrpc": GRPC},
    {"name": "e", "zipkin": {}},
    {"name": "e", "envoyExtAuthzHttp": {**GRPC, "pathPrefix": "x"}},
    {"name": "e", "envoyExtAuthzHttp": {**GRPC, "headersToUpstreamOnAllow": ["*"]}},
    {"name": "e", "envoyExtAuthzGrpc": {**GRPC, "statusOnError": "no"}},
]


@pytest.mark.parametrize("entry", BAD, ids=[str(n) for n in range(len(BAD))])
def test_a_provider_with_errors_is_left_out(entry: dict[str, object]) -> None:
    assert list(read_providers([entry])) == []


def test_providers_have_the_names_of_their_services() -> None:
    entries = [{"name": "a", "envoyExtAuthzGrpc": {**GRPC, "failOpen": True}}, {"name": "b", "envoyExtAuthzHttp": GRPC}]
    first, second = read_providers(entries)
    assert (first.authorizer, first.fail_open) == ("authz.auth:9000", True)
    assert second.authorizer != first.authorizer  # one Service with two kinds of requests
    assert list(read_providers([*entries, entries[0]])) == [second]  # a duplicate name is not valid


# Forms of HTTP


@pytest.mark.parametrize(
    ("path", "none", "base", "merged", "decoded"),
    [
        ("/a//b", "/a//b", "/a//b", "/a/b", "/a/b"),
        ("/%61/../b", "/%61/../b", "/b", "/b", "/b"),
        ("/a%2Fb", "/a%2Fb", "/a%2Fb", "/a%2Fb", "/a/b"),
        ("/a\\b", "/a\\b", "/a/b", "/a/b", "/a/b"),
        ("/a%5c..%2fb", "/a%5c..%2fb", "/a%5c..%2fb", "/a%5c..%2fb", "/b"),
    ],
)
def test_paths_are_normalized_as_the_mesh_says(path: str, none: str, base: str, merged: str, decoded: str) -> None:
    forms = dict(
        zip(("none", "base", "merge-slashes", "decode-and-merge-slashes"), (none, base, merged, decoded), strict=True)
    )
    for name, expected in forms.items():
        normalization = PathNormalization(name)
        derived = HttpForms(normalization).derive({SENT_PATH: path}, RawRequest())
        assert derived[compared_path(normalization)] == expected


def test_a_nul_is_refused_where_paths_are_normalized() -> None:
    for normalization in PathNormalization:
        derived = HttpForms(normalization).derive({SENT_PATH: "/%00", AUTHORITY: "A:80"}, RawRequest())
        assert (derived[REFUSED_PATH] is None) is (normalization is PathNormalization.NONE)
        assert derived[LOWERED_AUTHORITY] == "a:80"
    assert HttpForms(PathNormalization.BASE).derive({}, RawRequest()) == {REFUSED_PATH: None}
