"""`eastgate diff` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from eastgate.cli import main
from eastgate.ir.symbolic import cells

SHOP = Path(__file__).parents[3] / "examples/shop/manifests"

WORLD = """
apiVersion: v1
kind: Pod
metadata: {name: payments, namespace: shop, labels: {app: payments}}
spec: {serviceAccountName: payments, containers: [{name: c, ports: [{containerPort: 8443}]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web}}
spec: {serviceAccountName: web}
"""


def policy(rules: str, name: str = "payments", action: str = "ALLOW", level: str = "NETWORK") -> str:
    return f"""
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {{name: {name}, namespace: shop}}
spec:
  enforcementLevel: {level}
  targetRefs: [{{kind: Pod, selector: {{matchLabels: {{app: payments}}}}}}]
  action: {action}
  rules: {rules}
"""


WEB = "[{authorizationSource: {serviceAccounts: [web]}, networkAttributes: {ports: [8443]}}]"
BOTH = "[{authorizationSource: {serviceAccounts: [web, cart]}, networkAttributes: {ports: [8443]}}]"


class Shop:
    """Two folders, and the command on them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, side: str, *documents: str) -> Path:
        path = self.folder / side
        path.mkdir(exist_ok=True)
        (path / "all.yaml").write_text("\n---\n".join([WORLD, *documents]), encoding="utf-8")
        return path

    def run(self, *words: object, stdin: str | None = None) -> Result:
        return CliRunner().invoke(main, ["diff", *map(str, words)], input=stdin, catch_exceptions=False)

    def diff(self, old: list[str], new: list[str], *words: str) -> tuple[int, dict[str, Any]]:
        result = self.run(self.write("old", *old), self.write("new", *new), "-o", "json", *words)
        read: dict[str, Any] = json.loads(result.stdout)
        return result.exit_code, read


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def test_nothing_changes_where_only_lines_do(shop: Shop) -> None:
    status, report = shop.diff([policy(WEB)], ["# a comment", policy(WEB)])
    assert status == 0
    assert report["equal"]
    assert report["proven"]
    assert report["changes"] == []
    assert report["compared"] == 2


def test_a_policy_that_is_written_otherwise_and_means_the_same_is_no_change(shop: Shop) -> None:
    two = "[{authorizationSource: {serviceAccounts: [cart]}, networkAttributes: {ports: [8443]}}, " + WEB[1:]
    status, report = shop.diff([policy(BOTH)], [policy(two)])
    assert (status, report["equal"]) == (0, True)
    assert report["changedPolicies"] == ["AuthorizationPolicy/shop/payments"]


def test_a_caller_that_is_let_in(shop: Shop) -> None:
    status, report = shop.diff([policy(WEB)], [policy(BOTH)])
    assert status == 1
    (change,) = report["changes"]
    assert (change["now"], change["from"], change["to"], change["port"], change["condition"]) == (
        "allow",
        "sa:shop/cart",
        "pod:shop/payments",
        8443,
        None,
    )
    assert change["example"] == ["--from", "sa:shop/cart", "--to", "pod:shop/payments", "--port", "8443"]
    assert change["old"]["verdict"] == "deny"
    assert change["old"]["policy"] is None
    new = change["new"]
    assert (new["verdict"], new["policy"], new["rule"]) == ("allow", "AuthorizationPolicy/shop/payments", 0)
    assert new["file"].endswith("new/all.yaml")
    assert new["line"] > 10


def test_the_example_is_a_valid_question(shop: Shop) -> None:
    _, report = shop.diff([policy(WEB)], [policy(BOTH)])
    words = report["changes"][0]["example"]
    verdicts = [
        CliRunner().invoke(main, ["check", "-f", str(shop.folder / side), *words]).exit_code for side in ("old", "new")
    ]
    assert verdicts == [1, 0]


def test_conditions_describe_the_changed_requests(shop: Shop) -> None:
    def rules(methods: str) -> str:
        return f"[{{applicationAttributes: {{methods: {methods}, paths: [/v1/charges]}}}}]"

    old, new = policy(rules("[POST]"), level="APPLICATION"), policy(rules("[POST, PUT]"), level="APPLICATION")
    _, report = shop.diff([old], [new])
    (change,) = report["changes"]
    assert (change["from"], change["condition"]) == ("anyone", "PUT /v1/charges")


def test_newly_refused_spellings_are_reported(shop: Shop) -> None:
    anything = policy("[{}]", level="APPLICATION")
    every_path = policy('[{applicationAttributes: {paths: ["/*"]}}]', level="APPLICATION")
    status, report = shop.diff([anything], [every_path])
    assert status == 1
    spelled = [change for change in report["changes"] if "plain" not in change["spellings"]]
    assert any("encodedSlash" in change["spellings"] for change in spelled)
    assert any("%2F" in word for change in spelled for word in change["example"])


def test_paths_that_every_proxy_refuses_are_not_reported_if_other_requests_change_alike(shop: Shop) -> None:
    istio = """
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: payments, namespace: shop}
spec: {rules: [{to: [{operation: {paths: ["/charge*"]}}]}]}
"""
    old, new = shop.write("old"), shop.write("new", istio)
    for sides in ((old, new), (new, old)):
        said = shop.run(*sides, "--set", "istioDataPlane=sidecar").stdout
        assert "refuse" not in said
        assert "to pod:shop/payments, pod:shop/web, " in said


def test_fail_on(shop: Shop) -> None:
    narrow, wide = [policy(WEB)], [policy(BOTH)]
    assert shop.diff(narrow, wide, "--fail-on", "narrower")[0] == 0
    assert shop.diff(narrow, wide, "--fail-on", "wider")[0] == 1
    assert shop.diff(wide, narrow, "--fail-on", "wider")[0] == 0
    assert shop.diff(wide, narrow, "--fail-on", "narrower")[0] == 1


def test_workloads_on_one_side_are_listed(shop: Shop) -> None:
    more = "apiVersion: v1\nkind: Pod\nmetadata: {name: late, namespace: shop, labels: {app: payments}}\n"
    status, report = shop.diff([policy(WEB)], [policy(WEB), more])
    assert (status, report["equal"]) == (0, True)
    assert (report["addedWorkloads"], report["removedWorkloads"]) == (["pod:shop/late"], [])
    _, back = shop.diff([policy(WEB), more], [policy(WEB)])
    assert (back["addedWorkloads"], back["removedWorkloads"]) == ([], ["pod:shop/late"])


def test_destinations_and_ports_to_which_the_same_happens_are_one_change(shop: Shop) -> None:
    second = WORLD.split("---")[0].replace("name: payments,", "name: payments-2,")
    open_ports = "[{authorizationSource: {serviceAccounts: [web]}}]"
    _, report = shop.diff([policy("[]"), second], [policy(open_ports), second])
    (change,) = report["changes"]
    assert change["destinations"] == ["pod:shop/payments", "pod:shop/payments-2"]
    assert (change["port"], change["otherPorts"]) == (None, True)


def test_an_example_is_at_a_port_that_its_workload_declares(shop: Shop) -> None:
    beside = WORLD.split("---")[0].replace("name: payments,", "name: refunds,").replace("8443", "80")
    _, report = shop.diff([policy("[]"), beside], [policy("[{authorizationSource: {serviceAccounts: [web]}}]"), beside])
    (change,) = report["changes"]
    assert change["example"] == ["--from", "sa:shop/web", "--to", "pod:shop/payments", "--port", "8443"]


def test_a_policy_that_cannot_be_read_proves_nothing(shop: Shop) -> None:
    broken = policy("[{authorizationSource: {serviceAccount: [web]}}]", name="broken")
    status, report = shop.diff([policy(WEB), broken], [policy(WEB), broken])
    assert status == 3
    assert not report["equal"]
    assert not report["proven"]
    assert [each["reason"] for each in report["unproven"]] == ["rejectedPolicy"]
    result = shop.run(shop.write("old", policy(WEB), broken), shop.folder / "new", "--strict")
    assert result.exit_code == 2


UNREAD = """
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: {name: unread, namespace: shop}
spec: {endpointSelector: {}}
"""


def test_unread_objects_prevent_a_proof_unless_they_are_equal(shop: Shop) -> None:
    status, report = shop.diff([policy(WEB)], [policy(WEB), UNREAD])
    assert status == 3
    assert [(each["reason"], each["subject"]) for each in report["unproven"]] == [
        ("notRead", "CiliumNetworkPolicy/shop/unread")
    ]
    assert shop.diff([policy(WEB), UNREAD], [policy(WEB), UNREAD])[0] == 0
    assert shop.diff([policy(WEB)], [policy(WEB), UNREAD], "--unread", "ignore")[0] == 0
    assert shop.run(shop.folder / "old", shop.folder / "new", "--unread", "error").exit_code == 2


def test_where_a_bound_is_hit_nothing_is_proven(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "_MAX_ENTRIES", 0)
    paths = ", ".join(f"{{applicationAttributes: {{paths: [/p{n}], methods: [GET]}}}}" for n in range(4))
    old, new = policy(f"[{paths}]", level="APPLICATION"), policy(f"[{paths}, {{}}]", level="APPLICATION")
    status, report = shop.diff([old], [new])
    assert not report["proven"]
    assert status in (1, 3)
    assert "tooMany" in [each["reason"] for each in report["unproven"]]


def test_text_says_it_as_people_do(shop: Shop) -> None:
    new = shop.write("new", policy(BOTH))
    result = shop.run(shop.write("old", policy(WEB)), new)
    first, second, third, fourth, *_, last = result.stdout.splitlines()
    assert first == "now allowed: sa:shop/cart to pod:shop/payments port 8443"
    assert second.startswith("  by AuthorizationPolicy/shop/payments rule 0 (")
    assert third == "  before: no rule allows it at shop/payments"
    assert fourth == f"  example: eastgate check -f {new} --from sa:shop/cart --to pod:shop/payments --port 8443"
    assert last == "1 change: 1 wider, 0 narrower"


def test_markdown_has_nothing_in_it_that_a_manifest_made_markup(shop: Shop) -> None:
    rules = '[{authorizationSource: {identities: ["spiffe://td/|<b>`@x`"]}}]'
    result = shop.run(shop.write("old", policy("[]")), shop.write("new", policy(rules)), "-o", "markdown")
    if result.exit_code == 2:  # such an identity is invalid
        return
    assert "<b>" not in result.stdout
    assert "@x" not in result.stdout


@pytest.mark.parametrize("output", ["sarif", "github"])
def test_for_code_scanning(shop: Shop, output: str) -> None:
    result = shop.run(shop.write("old", policy(WEB)), shop.write("new", policy(BOTH)), "-o", output)
    assert result.exit_code == 1
    assert "EG6201" in result.stdout
    assert "new/all.yaml" in result.stdout


def test_standard_input_is_one_of_the_sides(shop: Shop) -> None:
    new = "\n---\n".join([WORLD, policy(BOTH)])
    assert shop.run(shop.write("old", policy(WEB)), "-", stdin=new).exit_code == 1
    assert shop.run("-", "-", stdin=new).exit_code == 2


@pytest.mark.parametrize(
    "words", [[], ["one"], ["one", "two", "three"], ["-f", "one"], ["--git", "main", "--without", "Pod/a/b", "x"]]
)
def test_the_compared_sides_must_be_clear(shop: Shop, words: list[str]) -> None:
    result = shop.run(*words)
    assert result.exit_code == 2
    assert "Usage" in result.stderr


# What if


def test_comparison_without_a_policy() -> None:
    name = "AuthorizationPolicy/shop/cart-from-web"
    result = CliRunner().invoke(main, ["diff", "-f", str(SHOP), "--without", name, "-o", "json"])
    assert result.exit_code == 1
    changes = json.loads(result.stdout)["changes"]
    assert {change["to"] for change in changes} == {"pod:shop/cart"}


def test_comparison_with_a_replaced_policy(shop: Shop) -> None:
    old = shop.write("old", policy(WEB))
    added = shop.folder / "new.yaml"
    added.write_text(policy(BOTH), encoding="utf-8")
    result = shop.run("-f", old, "--with", added, "-o", "json")
    assert result.exit_code == 1
    (change,) = json.loads(result.stdout)["changes"]
    assert (change["now"], change["from"]) == ("allow", "sa:shop/cart")
    both = shop.run("-f", old, "--with", added, "--without", "Pod/shop/payments", "-o", "json")
    assert json.loads(both.stdout)["removedWorkloads"] == ["pod:shop/payments"]


def test_a_missing_policy_cannot_be_removed(shop: Shop) -> None:
    result = shop.run("-f", shop.write("old", policy(WEB)), "--without", "AuthorizationPolicy/shop/payment")
    assert result.exit_code == 2
    assert "did you mean AuthorizationPolicy/shop/payments?" in result.stderr


def test_an_added_policy_must_be_valid(shop: Shop) -> None:
    added = shop.folder / "new.yaml"
    added.write_text(policy("[{serviceAccount: x}]"), encoding="utf-8")
    assert shop.run("-f", shop.write("old", policy(WEB)), "--with", added).exit_code == 2


def test_settings_count_for_both_sides(shop: Shop) -> None:
    deny = policy("[{authorizationSource: {serviceAccounts: [cart]}}]", action="DENY")
    assert shop.diff([deny], [])[1]["changes"]
    allowing = shop.diff([deny], [], "--set", "denyOnly=allow")[1]["changes"]
    assert [change["from"] for change in allowing] == ["sa:shop/cart"]


# Schemes


def _auth_policy(rule: str) -> str:
    manifest = {
        "apiVersion": "apim.kuadrant.io/v1alpha1",
        "kind": "AuthPolicy",
        "metadata": {"name": "toys", "namespace": "shop"},
        "spec": {
            "targetRef": {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "edge"},
            "authSchemes": [
                {
                    "hosts": ["toys.com"],
                    "identity": [{"name": "staff", "oidc": {"endpoint": "https://idp.example"}}],
                    "authorization": [
                        {
                            "name": "who",
                            "json": {"rules": [{"selector": "auth.identity.sub", "operator": "eq", "value": rule}]},
                        }
                    ],
                }
            ],
        },
    }
    return yaml.safe_dump(manifest)


GATEWAY = """
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec: {gatewayClassName: any, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: toys, namespace: shop}
spec: {parentRefs: [{name: edge}], hostnames: [toys.com], rules: [{backendRefs: [{name: toys, port: 80}]}]}
"""


def test_a_scheme_that_changed_is_never_called_equal(shop: Shop) -> None:
    status, report = shop.diff([GATEWAY, _auth_policy("jane")], [GATEWAY, _auth_policy("joe")])
    assert status in (1, 3)
    assert not report["equal"]
    assert not report["proven"]
    assert {each["reason"] for each in report["unproven"]} == {"schemeChanged"}
    same = shop.diff([GATEWAY, _auth_policy("jane")], ["# moved", GATEWAY, _auth_policy("jane")])
    assert (same[0], same[1]["equal"]) == (0, True)


def _external(path: str) -> str:
    return f"""
apiVersion: agentic.networking.x-k8s.io/v1alpha1
kind: XAccessPolicy
metadata: {{name: ask, namespace: shop}}
spec:
  targetRefs: [{{group: gateway.networking.k8s.io, kind: Gateway, name: edge}}]
  action: ExternalAuth
  externalAuth:
    protocol: HTTP
    backendRef: {{name: authz, port: 9000}}
    http: {{path: {path}}}
"""


def test_an_authorizer_with_other_questions_is_never_equal(shop: Shop) -> None:
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: authz, namespace: shop}\nspec: {ports: [{port: 9000}]}"
    documents = [GATEWAY, service, _external("/a")]
    status, report = shop.diff(documents, [GATEWAY, service, _external("/b")])
    assert status == 3, report
    assert {each["reason"] for each in report["unproven"]} == {"schemeChanged"}
    assert shop.diff(documents, ["# moved", *documents])[1]["equal"]


def _expression(text: str) -> str:
    manifest = {
        "apiVersion": "agentic.networking.x-k8s.io/v1alpha1",
        "kind": "XAccessPolicy",
        "metadata": {"name": "tools", "namespace": "shop"},
        "spec": {
            "targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "edge"}],
            "action": "Allow",
            "rules": [{"name": "one", "authorization": {"type": "CEL", "cel": {"expression": text}}}],
        },
    }
    return yaml.safe_dump(manifest)


def test_expressions_get_examples_that_they_are_true_of(shop: Shop) -> None:
    numbers, letters = (f"request.path.matches('^/{part}+$')" for part in ("[0-9]", "[a-f]"))
    status, report = shop.diff([GATEWAY, _expression(numbers)], [GATEWAY, _expression(letters)])
    assert (status, report["proven"]) == (1, True), report["unproven"]
    assert {change["now"] for change in report["changes"]} == {"allow", "deny"}


def test_an_expression_of_which_no_example_is_found_is_no_change_and_not_equal(shop: Shop) -> None:
    short, long = (f"size(request.path) == {size} && request.path.endsWith('z')" for size in (117, 118))
    status, report = shop.diff([GATEWAY, _expression(short)], [GATEWAY, _expression(long)])
    assert (status, report["equal"], report["changes"]) == (3, False, [])
    assert {each["reason"] for each in report["unproven"]} == {"notConfirmed"}


SERVICE = """
apiVersion: v1
kind: Service
metadata: {{name: payments, namespace: shop}}
spec: {{selector: {{app: {app}}}, ports: [{{port: 443, targetPort: {target}}}]}}
"""


@pytest.mark.parametrize(("app", "target"), [("payments", 8444), ("web", 8443)])
def test_a_service_that_leads_elsewhere_is_compared_at_its_own_ports(shop: Shop, app: str, target: int) -> None:
    old = shop.write("old", policy(WEB), SERVICE.format(app="payments", target=8443))
    new = shop.write("new", policy(WEB), SERVICE.format(app=app, target=target))
    result = shop.run(old, new, "-o", "json")
    changes = json.loads(result.stdout)["changes"]
    assert {(change["to"], change["port"]) for change in changes} == {("service:shop/payments", 443)}
    assert {change["now"] for change in changes} == {"allow" if app == "web" else "deny"}
    assert result.exit_code == 1


def test_a_path_that_is_spelled_oddly_is_a_group_of_its_own_where_others_are_fewer(shop: Shop) -> None:
    old = shop.write("old")
    rules = "[{applicationAttributes: {methods: [GET]}}, {applicationAttributes: {methods: [PUT], paths: [/a/*]}}]"
    new = shop.write("new", policy(rules, level="APPLICATION"))
    changes = json.loads(shop.run(old, new, "-o", "json").stdout)["changes"]
    examples = [" ".join(change["example"]) for change in changes]
    assert any("--method GET" in example and "%2F" in example for example in examples)


def _tokens(issuer: str, audience: str = "shop") -> str:
    return f"""
apiVersion: security.istio.io/v1
kind: RequestAuthentication
metadata: {{name: tokens, namespace: shop}}
spec: {{jwtRules: [{{issuer: {issuer}, audiences: [{audience}]}}]}}
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {{name: with-token, namespace: shop}}
spec: {{rules: [{{from: [{{source: {{requestPrincipals: ["*"]}}}}]}}]}}
"""


@pytest.mark.parametrize("after", [_tokens("b"), _tokens("a", "office"), _tokens("a").partition("---")[2]])
def test_other_tokens_are_never_called_equal(shop: Shop, after: str) -> None:
    _, report = shop.diff([WORLD, _tokens("a")], [WORLD, after])
    assert not report["equal"]
    assert not report["proven"]
    assert "derivedOtherwise" in {each["reason"] for each in report["unproven"]}
    same = shop.diff([WORLD, _tokens("a")], ["# moved", WORLD, _tokens("a")])
    assert (same[0], same[1]["equal"]) == (0, True)
