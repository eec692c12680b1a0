"""Each form of the API accepts the smallest and the largest valid policy, and reads it correctly."""

from __future__ import annotations

import pytest

from eastgate import dialects
from eastgate.cluster.targets import BackendNamed, GatewayNamed, Target
from eastgate.dialects.accesspolicy.model import Action, AuthorizerReference
from eastgate.ir import ExternalAuthorizer, ExternalProtocol, PolicyRef
from tests.dialects.accesspolicy.reading import (
    AUTHORIZER,
    BACKEND,
    CHECKOUT,
    FORMS,
    GATEWAY,
    NETWORKING,
    PROTOTYPE,
    judge,
    manifest,
    policy,
)
from tests.dialects.reading import document

MINIMAL = {
    "v0alpha0": f"{GATEWAY}rules: [{{name: r, source: {CHECKOUT}}}]",
    "v0alpha0-cel": f"{GATEWAY}rules: [{{name: r, source: {CHECKOUT}}}]",
    "v1alpha1": f"{GATEWAY}action: Allow",
}
TARGETS = f"""
targetRefs:
- {{group: {PROTOTYPE}, kind: XBackend, name: pay}}
- {{group: {NETWORKING}, kind: XBackend, name: pay.v2}}
- {{group: {PROTOTYPE}, kind: Backend, name: quote}}
"""
ASKED = """
protocol: HTTP
http: {path: /check, allowedHeaders: [x-team, x-user], allowedResponseHeaders: [x-user]}
forwardBody: {maxSize: 65535}
backendRef: {group: "", kind: Service, name: fraud, namespace: security, port: 65535}
"""
HTTP_AUTHORIZER = "{" + ", ".join(ASKED.strip().splitlines()) + "}"
LONGEST_NAME = "a" * 63
MAXIMAL = {
    "v0alpha0": f"""
{TARGETS}
action: Deny
rules:
- name: {LONGEST_NAME}
  source: {{type: SPIFFE, spiffe: spiffe://other.example/agents/checkout}}
  authorization: {{type: InlineTools, tools: [charge, Charge, "get weather", "files/read", übertragen]}}
- name: b.c-d
  source: {{type: ServiceAccount, serviceAccount: {{name: checkout, namespace: shop}}}}
""",
    "v0alpha0 asks": f"""
{TARGETS}
rules:
- name: ask
  source: {{type: ServiceAccount, serviceAccount: {{name: checkout, namespace: shop}}}}
  authorization: {{type: ExternalAuth, externalAuth: {HTTP_AUTHORIZER}}}
""",
    "v0alpha0-cel": f"""
{TARGETS}
action: Allow
rules:
- name: a
  source: {CHECKOUT}
  authorization: {{type: InlineTools, tools: [charge]}}
- name: b
  source: {CHECKOUT}
  authorization: {{type: CEL, cel: {{expression: "request.mcp.tool_name == 'charge'", message: "no"}}}}
""",
    "v1alpha1": f"""
{TARGETS}
action: Deny
rules:
- name: all
  source: {{type: SPIFFE, spiffe: spiffe://other.example/agents/checkout}}
  authorization:
    type: Inline
    methods: [GET, HEAD, POST, PUT, DELETE, CONNECT, OPTIONS, TRACE, PATCH]
    paths:
    - {{value: ""}}
    - {{value: /mcp}}
    - {{type: Exact, value: /mcp/}}
    - {{type: RegularExpression, value: "/v[0-9]+"}}
    headers: [{{name: x-team, value: pay}}, {{type: RegularExpression, name: x-user, value: "a.*"}}]
    hosts: [api.example.com, "*.example.com", localhost]
    ports: [1, 443, 65535]
    mcp:
      mcpBaseProtocolMethodsOption: MATCH_BASE_PROTOCOL_METHODS
      methods:
      - {{name: tools}}
      - {{name: tools/call, params: [charge, {"x" * 20}]}}
      - {{name: resources/read, params: ["file:///etc"]}}
- name: cel
  authorization: {{type: CEL, cel: {{expression: "request.headers['x-team'] == 'pay' && request.path != '/x'"}}}}
- name: anyone
""",
    "v1alpha1 asks": f"""
{TARGETS}
action: ExternalAuth
externalAuth: {HTTP_AUTHORIZER}
rules:
- {{name: some, source: {CHECKOUT}, authorization: {{type: Inline, hosts: [api.example.com]}}}}
""",
}


@pytest.mark.parametrize("form", MINIMAL)
@pytest.mark.parametrize("kind", ["XAccessPolicy", "AccessPolicy"])
def test_the_least_that_can_be_written_is_a_policy(form: str, kind: str) -> None:
    text = manifest(form, MINIMAL[form], kind=kind)
    assert dialects.is_policy(document(text))
    read = policy(text)
    assert read.ref == PolicyRef(kind, "prod", "p", FORMS[form].partition("/")[0])
    assert read.targets == (GatewayNamed("prod", "gw"),)
    assert (read.action, len(read.rules), read.audit) == (Action.ALLOW, 1, False)


BACKENDS = (BackendNamed("prod", "pay"), BackendNamed("prod", "pay.v2"), BackendNamed("prod", "quote"))


@pytest.mark.parametrize(
    ("form", "action", "rules"),
    [
        ("v0alpha0", Action.DENY, 2),
        ("v0alpha0 asks", Action.ASK, 1),
        ("v0alpha0-cel", Action.ALLOW, 2),
        ("v1alpha1", Action.DENY, 3),
        ("v1alpha1 asks", Action.ASK, 1),
    ],
)
def test_the_most_that_can_be_written_is_read_in_full(form: str, action: Action, rules: int) -> None:
    read = policy(manifest(form.split()[0], MAXIMAL[form]))
    assert (read.targets, read.action, len(read.rules)) == (BACKENDS, action, rules)


@pytest.mark.parametrize("form", ["v0alpha0 asks", "v1alpha1 asks"])
def test_an_authorizer_is_a_service_and_who_refers_to_it(form: str) -> None:
    group = FORMS[form.split()[0]].partition("/")[0]
    ((_, authorizer),) = policy(manifest(form.split()[0], MAXIMAL[form])).asks
    external = ExternalAuthorizer(
        "security",
        "fraud",
        65535,
        ExternalProtocol.HTTP,
        "/check",
        frozenset({"x-team", "x-user"}),
        frozenset({"x-user"}),
        65535,
    )
    assert authorizer == AuthorizerReference(external, (group, "XAccessPolicy", "prod"))
    assert str(authorizer) == "fraud.security:65535"


def test_an_authorizer_without_a_namespace_is_of_the_policys_own() -> None:
    ((_, authorizer),) = policy(manifest("v1alpha1", f"{GATEWAY}action: ExternalAuth\nexternalAuth: {AUTHORIZER}")).asks
    assert str(authorizer) == "fraud.prod:9000"


@pytest.mark.parametrize("form", MINIMAL)
def test_a_policy_without_a_namespace_is_of_the_default_one(form: str) -> None:
    read = policy(manifest(form, MINIMAL[form], "{name: p}"))
    assert (read.ref.namespace, read.targets) == ("default", (GatewayNamed("default", "gw"),))


@pytest.mark.parametrize("form", MINIMAL)
@pytest.mark.parametrize(("mode", "audit"), [("audit", True), ("enforce", False)])
def test_every_form_can_be_audited_first(form: str, mode: str, audit: bool) -> None:
    metadata = f"{{name: p, namespace: prod, annotations: {{eastgate.dev/mode: {mode}}}}}"
    assert policy(manifest(form, MINIMAL[form], metadata)).audit is audit


TARGETED: list[tuple[str, tuple[Target, ...]]] = [
    (GATEWAY, (GatewayNamed("prod", "gw"),)),
    (BACKEND, (BackendNamed("prod", "pay"),)),
    (
        "targetRefs: ["
        + ", ".join(f"{{group: gateway.networking.k8s.io, kind: Gateway, name: g{n}}}" for n in range(10))
        + "]\n",
        tuple(GatewayNamed("prod", f"g{n}") for n in range(10)),
    ),
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("targets", "expected"), TARGETED)
def test_up_to_ten_gateways_or_backends_are_targets(form: str, targets: str, expected: tuple[Target, ...]) -> None:
    rest = MINIMAL[form].removeprefix(GATEWAY)
    assert policy(manifest(form, targets + rest)).targets == expected


@pytest.mark.parametrize("form", FORMS)
def test_ten_rules_are_allowed(form: str) -> None:
    action = "action: Allow\n" if form == "v1alpha1" else ""
    rules = ", ".join(f"{{name: r{n}, source: {CHECKOUT}}}" for n in range(10))
    assert len(policy(manifest(form, f"{GATEWAY}{action}rules: [{rules}]")).rules) == 10


@pytest.mark.parametrize("action", ["Deny", "ExternalAuth"])
def test_a_policy_that_denies_or_asks_about_nothing_is_accepted_with_a_warning(action: str) -> None:
    asked = f"externalAuth: {AUTHORIZER}\n" if action == "ExternalAuth" else ""
    read, found = judge(manifest("v1alpha1", f"{GATEWAY}action: {action}\n{asked}rules: []"))
    assert read is not None
    assert read.rules == ()
    assert read.action is (Action.ASK if asked else Action.DENY)
    assert [(one.code.id, one.is_error) for one in found] == [("EG3030", False)]


def test_a_tool_named_with_its_backend_on_that_backend_is_accepted_with_a_warning() -> None:
    rule = f"{{name: r, source: {CHECKOUT}, authorization: {{type: InlineTools, tools: [pay/charge, other/charge]}}}}"
    read, found = judge(manifest("v0alpha0", f"{BACKEND}rules: [{rule}]"))
    assert read is not None
    assert [(one.code.id, one.help, one.is_error) for one in found] == [("EG3031", "write charge", False)]


@pytest.mark.parametrize("group", [PROTOTYPE, NETWORKING])
def test_the_controllers_own_configuration_is_no_policy(group: str) -> None:
    text = f"apiVersion: {group}/v0alpha0\nkind: KANConfig\nmetadata: {{name: default}}\n"
    assert not dialects.is_policy(document(text))
