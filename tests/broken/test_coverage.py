"""Every code of the catalogue has a broken manifest, in every form of the API that can cause it."""

from __future__ import annotations

import re
from types import ModuleType

import pytest

from eastgate.basics.diagnostics import Code
from eastgate.cluster import codes as world
from eastgate.dialects import codes as dialects
from eastgate.dialects.accesspolicy import codes as accesspolicy
from eastgate.dialects.gep3779 import codes as gep3779
from eastgate.dialects.istio import codes as istio
from eastgate.dialects.kuadrant.policies import codes as policies
from eastgate.dialects.kuadrant.proposal import codes as kuadrant
from eastgate.dialects.kuadrant.schemes import codes as schemes
from eastgate.dialects.linkerd import codes as linkerd
from eastgate.dialects.network import codes as network
from eastgate.reading.manifests import codes as sources
from eastgate.reading.manifests.shapes import codes as schema
from tests.broken.corpus import MANIFESTS, expected

# Codes that no file can cause.
NOT_IN_A_FILE = {
    sources.UNREADABLE,  # there is no file
    sources.TOO_LARGE,  # 512 MiB
    sources.EMPTY_FOLDER,  # a folder
    sources.LEADS_OUT,  # a link; tests/attacks/test_files.py
    sources.NOT_A_FILE,  # a pipe; tests/attacks/test_files.py
    # folders; tests/reading/manifests/test_folders.py and test_kustomize.py
    *(sources.LEFT_ASIDE, sources.EMPTY_INPUT, sources.HELM_CHART, sources.BAD_PATTERN),
    *(sources.NOT_DEPLOYED, sources.KUSTOMIZATION_NAMED, sources.NO_KUSTOMIZATION),
}


def codes_of(module: ModuleType) -> set[Code]:
    return {value for value in vars(module).values() if isinstance(value, Code)}


NAMESPACED = "v1alpha2 v1alpha1 x"
ALL = f"{NAMESPACED} cluster"
FORMS = {
    gep3779.NO_TARGET: NAMESPACED,
    gep3779.ROUTE_TARGET: NAMESPACED,
    gep3779.NAMESPACE_TARGET: NAMESPACED,
    gep3779.TARGET_KIND: NAMESPACED,
    gep3779.TARGET_GROUP: NAMESPACED,
    gep3779.SELECTOR_NOT_ON_POD: NAMESPACED,
    gep3779.POD_NEEDS_SELECTOR: NAMESPACED,
    gep3779.POD_HAS_NAME: NAMESPACED,
    gep3779.SERVICE_NEEDS_NAME: NAMESPACED,
    gep3779.ONE_POD_TARGET: "x",
    gep3779.ACTION: ALL,
    gep3779.DENY_WITHOUT_RULES: "v1alpha2 v1alpha1 cluster",
    gep3779.LEVEL: "v1alpha2 x cluster",
    gep3779.LEVEL_IN_V1ALPHA1: "v1alpha1",
    gep3779.LEVEL_REQUIRED: "x",
    gep3779.LEVEL_RESERVED: "x",
    gep3779.APPLICATION_ATTRIBUTES_AT_NETWORK: "v1alpha2 cluster",
    gep3779.SIDECAR_APPLICATION_SERVICE: "v1alpha2",
    gep3779.AMBIENT_APPLICATION_SELECTOR: "v1alpha2",
    gep3779.NETWORK_NEEDS_SELECTOR: "v1alpha2 x",
    gep3779.SERVICE_ACCOUNT: "v1alpha2 x cluster",
    gep3779.EVERY_SERVICE_ACCOUNT: "v1alpha2 cluster",
    gep3779.SERVICE_ACCOUNT_V1ALPHA1: "v1alpha1",
    gep3779.BARE_SERVICE_ACCOUNT: "cluster",
    gep3779.SPIFFE_ID: ALL,
    gep3779.ONE_SOURCE_LIST: "v1alpha1",
    gep3779.EMPTY_LIST_V1ALPHA1: "v1alpha1",
    gep3779.PORT_RANGE: ALL,
    gep3779.PATH_PATTERN: "v1alpha2 cluster",
    gep3779.METHOD: "v1alpha2 cluster",
    gep3779.METHOD_CASE: "v1alpha2 cluster",
    gep3779.SOURCE_MEMBER_MISSING: "x",
    gep3779.SOURCE_MEMBER_FOREIGN: "x",
    schema.UNKNOWN_FIELD: ALL,
    schema.WRONG_TYPE: ALL,
    schema.MISSING_FIELD: ALL,
    schema.NULL_VALUE: ALL,
    schema.BAD_MODE: ALL,
}

# AccessPolicy: its manifests are in one folder, and their names begin with the form.
BOTH = "v0alpha0 v1alpha1"
EVERY = f"{BOTH} backend"
ACCESS_FORMS = {
    accesspolicy.NO_TARGET: BOTH,
    accesspolicy.TARGET_KIND: f"{BOTH} v0alpha0-cel",
    accesspolicy.MIXED_TARGETS: BOTH,
    accesspolicy.SECTION_NAME: BOTH,
    accesspolicy.TOO_MANY: BOTH,
    accesspolicy.RULE_NAMES: BOTH,
    accesspolicy.NO_RULES: "v0alpha0",
    accesspolicy.ONE_EXTERNAL_AUTH: "v0alpha0",
    accesspolicy.MIXED_AUTHORIZATION: "v0alpha0 v0alpha0-cel",
    accesspolicy.SOURCE_MEMBER: BOTH,
    accesspolicy.FOREIGN_MEMBER: f"{BOTH} v0alpha0-cel",
    accesspolicy.TOOLS_MISSING: "v0alpha0",
    accesspolicy.EXTERNAL_AUTH_MISSING: BOTH,
    accesspolicy.DENY_ASKS: "v0alpha0",
    accesspolicy.TOOL_NAME: BOTH,
    accesspolicy.DUPLICATE: BOTH,
    accesspolicy.PROTOCOL: BOTH,
    accesspolicy.AUTHORIZER: BOTH,
    accesspolicy.PARAMS: "v1alpha1",
    accesspolicy.CEL_MISSING: "v0alpha0-cel v1alpha1",
    accesspolicy.CEL_FOREIGN: "v1alpha1",
    accesspolicy.CEL_EXPRESSION: "v0alpha0-cel v1alpha1",
    accesspolicy.HTTP_VALUE: BOTH,
    accesspolicy.EXACTLY_ONE: "backend",
    accesspolicy.RULE_NAME: BOTH,
    accesspolicy.SPIFFE_ID: BOTH,
    accesspolicy.ACCOUNT: BOTH,
    accesspolicy.PARAM_LENGTH: "v1alpha1",
    accesspolicy.DESTINATION: "backend",
    accesspolicy.NO_EFFECT: "v1alpha1",
    accesspolicy.QUALIFIED_ON_BACKEND: BOTH,
    schema.UNKNOWN_FIELD: EVERY,
    schema.WRONG_TYPE: EVERY,
    schema.MISSING_FIELD: EVERY,
    schema.NULL_VALUE: EVERY,
    schema.NOT_A_CHOICE: BOTH,
    schema.OUT_OF_RANGE: EVERY,
    schema.BAD_NAME: EVERY,
    schema.BAD_MODE: BOTH,
}

# Linkerd: its manifests are in one folder too, and the form is the kind of resource.
LINKERD = "server serverauthorization authorizationpolicy meshtls network httproute"
LINKERD_FORMS = {
    linkerd.MATCH_TYPE: "gateway",
    linkerd.ROUTE_BACKEND: "gateway",
    linkerd.SERVICE_TARGET: "authorizationpolicy",
    linkerd.TARGET_KIND: "authorizationpolicy",
    linkerd.OTHER_NAMESPACE: "authorizationpolicy",
    linkerd.TARGET_NOT_IN_LINKERD: "authorizationpolicy",
    linkerd.SEVERAL_OF_A_KIND: "authorizationpolicy",
    linkerd.AUTHENTICATION_KIND: "authorizationpolicy",
    linkerd.IDENTITY: "serverauthorization meshtls",
    linkerd.IDENTITIES_OR_REFS: "meshtls",
    linkerd.IDENTITY_REF_KIND: "meshtls",
    linkerd.NAMESPACE_IN_NAMESPACE: "meshtls",
    linkerd.NO_NETWORK: "network",
    linkerd.CIDR: "serverauthorization network",
    linkerd.NEGATED: "serverauthorization network",
    linkerd.EXCEPTION_OUTSIDE: "serverauthorization network",
    linkerd.ACCESS_POLICY: "server",
    linkerd.PROXY_PROTOCOL: "server",
    linkerd.ONE_SELECTOR: "server",
    linkerd.SERVER_PORT: "server",
    linkerd.LATER_VERSION: "server",
    linkerd.ILLEGAL_EXPRESSION: "server serverauthorization",
    linkerd.ONE_SERVER: "serverauthorization",
    linkerd.UNAUTHENTICATED_MESH: "serverauthorization",
    linkerd.UNAUTHENTICATED_TLS: "serverauthorization",
    linkerd.NO_CLIENT: "serverauthorization",
    linkerd.ROUTE_PARENT: "httproute gateway",
    linkerd.ROUTE_PATH: "httproute",
    linkerd.ROUTE_PATTERN: "httproute",
    linkerd.ROUTE_REDIRECT: "httproute gateway",
    linkerd.ROUTE_TIMEOUT: "httproute",
    linkerd.ROUTE_TOO_MANY: "httproute",
    linkerd.ROUTE_HOST: "httproute",
    linkerd.DROPPED_ROUTE: "httproute gateway",
    linkerd.ROUTE_HEADER: "httproute gateway",
    linkerd.MODE_WITHOUT_EFFECT: "meshtls network httproute",
    schema.UNKNOWN_FIELD: LINKERD,
    schema.WRONG_TYPE: LINKERD,
    schema.MISSING_FIELD: LINKERD,
    schema.NULL_VALUE: LINKERD,
    schema.NOT_A_CHOICE: "httproute",
    schema.OUT_OF_RANGE: "httproute",
    schema.BAD_NAME: LINKERD,
    schema.BAD_LABEL: "server",
    schema.BAD_OPERATOR: "server",
    schema.BAD_MODE: "server authorizationpolicy meshtls network httproute",
    dialects.UNKNOWN_VERSION: LINKERD,
}

# Kuadrant: errors in a policy, in the kind of the document, and in an auth scheme of a policy.
KUADRANT = "authpolicy kind scheme"
KUADRANT_FORMS = {
    **dict.fromkeys(codes_of(kuadrant), "authpolicy"),
    schema.UNKNOWN_FIELD: "authpolicy kind scheme",
    schema.WRONG_TYPE: "authpolicy",
    schema.MISSING_FIELD: "authpolicy",
    schema.NULL_VALUE: "authpolicy",
    schema.BAD_NAME: "authpolicy",
    schema.BAD_MODE: "authpolicy",
    dialects.UNKNOWN_KIND: "kind",
    dialects.UNKNOWN_VERSION: "kind",
    schemes.MIXED_VERSIONS: "scheme",
    schemes.OPERATOR: "scheme",
    schemes.SECRETS: "scheme",
    schemes.DUPLICATE_NAME: "scheme",
    schemes.CALLBACKS: "scheme",
}

# Network policies: the form is the kind.
NETWORK = "networkpolicy clusternetworkpolicy adminnetworkpolicy baselineadminnetworkpolicy"
CLUSTER_WIDE = "clusternetworkpolicy adminnetworkpolicy"
NETWORK_FORMS = {
    network.EMPTY_PEER: "networkpolicy",
    network.BLOCK_BESIDE_SELECTOR: "networkpolicy",
    network.CIDR: "networkpolicy clusternetworkpolicy",
    network.EXCEPT: "networkpolicy",
    network.PROTOCOL: "networkpolicy adminnetworkpolicy",
    network.PORT: f"networkpolicy {CLUSTER_WIDE}",
    network.END_PORT: "networkpolicy",
    network.POLICY_TYPES: "networkpolicy",
    network.ONE_FIELD: CLUSTER_WIDE,
    network.OLD_PEER: f"{CLUSTER_WIDE} baselineadminnetworkpolicy",
    network.ACTION: f"{CLUSTER_WIDE} baselineadminnetworkpolicy",
    network.TOO_MANY: CLUSTER_WIDE,
    network.EMPTY_LIST: CLUSTER_WIDE,
    network.RANGE: "clusternetworkpolicy",
    network.NAMED_PORT_OUTSIDE: CLUSTER_WIDE,
    network.DOMAIN_NAME: "clusternetworkpolicy",
    network.DOMAIN_DENIED: CLUSTER_WIDE,
    network.DUPLICATE: "clusternetworkpolicy",
    network.BASELINE_NAME: "baselineadminnetworkpolicy",
    network.RULE_NAME: "clusternetworkpolicy",
    network.OTHER_FORM: CLUSTER_WIDE,
    network.OUTSIDE_AT_INGRESS: "clusternetworkpolicy",
    network.NO_BASELINE_DOMAINS: "baselineadminnetworkpolicy",
    network.EMPTY_RANGE: "adminnetworkpolicy",
    schema.UNKNOWN_FIELD: NETWORK,
    schema.MISSING_FIELD: f"networkpolicy {CLUSTER_WIDE}",
    schema.WRONG_TYPE: "networkpolicy",
    schema.NULL_VALUE: "networkpolicy clusternetworkpolicy",
    schema.NAMESPACE_ON_CLUSTER_SCOPED: "clusternetworkpolicy",
    sources.DUPLICATE_OBJECT: "networkpolicy clusternetworkpolicy",
    dialects.UNKNOWN_KIND: "networkpolicy adminnetworkpolicy",
    dialects.UNKNOWN_VERSION: f"networkpolicy {CLUSTER_WIDE}",
}

# For auth schemes, tests/dialects/kuadrant/scheme_messages.txt has every code.
MODULES = [
    sources,
    world,
    schema,
    dialects,
    gep3779,
    accesspolicy,
    linkerd,
    kuadrant,
    policies,
    network,
    istio,
]


def shown(folder: str = "*", form: str = "") -> set[str]:
    """Return the codes in the goldens of a folder whose names begin with a form."""
    return {
        code
        for manifest in MANIFESTS
        if folder in ("*", manifest.split("/")[1]) and manifest.split("/")[2].startswith(form)
        for code in re.findall(
            r"^(?:error|warning|info)\[(EG\d{4})\]", expected(manifest).read_text("utf-8"), re.MULTILINE
        )
    }


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_code_is_in_a_golden_unless_no_file_can_show_it(module: ModuleType) -> None:
    hidden = {code.id for code in codes_of(module) - NOT_IN_A_FILE}
    assert hidden - shown() == set()


def test_the_codes_that_no_file_can_show_are_in_no_golden() -> None:
    assert {code.id for code in NOT_IN_A_FILE} & shown() == set()


def test_the_table_of_forms_has_every_code_of_the_dialect() -> None:
    assert codes_of(gep3779) - FORMS.keys() == set()
    assert codes_of(accesspolicy) - ACCESS_FORMS.keys() == set()
    assert codes_of(linkerd) - LINKERD_FORMS.keys() == set()
    assert codes_of(network) - NETWORK_FORMS.keys() == set()


@pytest.mark.parametrize("form", ALL.split())
def test_every_code_is_shown_in_every_form_where_it_can_be_reported(form: str) -> None:
    assert {code.id for code, forms in FORMS.items() if form in forms.split()} - shown(form) == set()


@pytest.mark.parametrize("form", ["v0alpha0", "v0alpha0-cel", "v1alpha1", "backend"])
def test_every_code_of_access_policies_is_shown_in_every_form_where_it_can_be_reported(form: str) -> None:
    wanted = {code.id for code, forms in ACCESS_FORMS.items() if form in forms.split()}
    assert wanted - shown("accesspolicy", f"{form}-") == set()


@pytest.mark.parametrize("form", [*LINKERD.split(), "gateway"])
def test_every_code_of_linkerd_is_shown_in_every_resource_where_it_can_be_reported(form: str) -> None:
    wanted = {code.id for code, forms in LINKERD_FORMS.items() if form in forms.split()}
    assert wanted - shown("linkerd", f"{form}-") == set()


@pytest.mark.parametrize("form", KUADRANT.split())
def test_every_code_of_kuadrant_is_shown_where_it_can_be_reported(form: str) -> None:
    wanted = {code.id for code, forms in KUADRANT_FORMS.items() if form in forms.split()}
    assert wanted - shown("kuadrant", f"{form}-") == set()


@pytest.mark.parametrize("form", NETWORK.split())
def test_every_code_of_network_policies_is_shown_where_it_can_be_reported(form: str) -> None:
    wanted = {code.id for code, forms in NETWORK_FORMS.items() if form in forms.split()}
    assert wanted - shown("network", f"{form}-") == set()


@pytest.mark.parametrize("module", [*MODULES, schemes], ids=lambda module: module.__name__)
def test_every_code_has_a_title_and_an_explanation(module: ModuleType) -> None:
    for code in codes_of(module):
        assert code.title
        assert code.explanation.endswith((".", "”")), code.id


def test_no_two_codes_have_the_same_id() -> None:
    found = [code.id for module in [*MODULES, schemes] for code in codes_of(module)]
    assert sorted(found) == sorted(set(found))
