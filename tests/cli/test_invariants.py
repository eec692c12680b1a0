"""The contract of `test` for statements about all requests."""

from __future__ import annotations

import json
import shlex
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

WORLD = """\
apiVersion: v1
kind: Namespace
metadata: {name: shop, labels: {pci: "true"}}
---
apiVersion: v1
kind: Pod
metadata: {name: cards, namespace: shop, labels: {data: cards}}
spec: {serviceAccountName: cards}
---
apiVersion: v1
kind: Service
metadata: {name: cards, namespace: shop}
spec: {selector: {data: cards}, ports: [{port: 443, targetPort: 8443}]}
---
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {name: cards, namespace: shop}
spec:
  targetRefs: [{kind: Pod, selector: {matchLabels: {data: cards}}}]
  action: ALLOW
  rules:
  - authorizationSource:
      serviceAccounts: [cart]
    networkAttributes: {ports: [8443]}
"""

IN_SHOP = "{pods: {matchLabels: {data: cards}}, namespaces: {matchLabels: {kubernetes.io/metadata.name: shop}}}"


def invariant(statement: str, name: str = "i", more: str = "") -> str:
    return f"""\
apiVersion: eastgate.dev/v1alpha1
kind: Invariant
metadata: {{name: {name}}}
spec:
  manifests: [m.yaml]
  {more}
  {statement}
"""


ONLY_CART = f"only: {{from: {{serviceAccounts: [shop/cart]}}, to: {IN_SHOP}}}"
ONLY_WEB = f"only: {{from: {{serviceAccounts: [shop/web]}}, to: {IN_SHOP}}}"


@pytest.fixture(autouse=True)
def files(cli: Cli) -> None:
    Path("m.yaml").write_text(WORLD)


def run(cli: Cli, *documents: str, words: tuple[str, ...] = ()) -> tuple[int, str]:
    Path("i.yaml").write_text("---\n".join(documents))
    result = cli("test", "i.yaml", *words)
    return result.exit_code, result.stdout


def statement_of(cli: Cli, document: str) -> dict[str, object]:
    result: dict[str, object] = json.loads(run(cli, document, words=("-o", "json"))[1])["results"][0]["statement"]
    return result


def test_a_statement_that_holds_passes(cli: Cli) -> None:
    assert run(cli, invariant(ONLY_CART)) == (0, "1 passed, 0 failed\n")
    assert run(cli, invariant(ONLY_CART), words=("-v",))[1].startswith("ok   i: only\n")


def test_a_folder_is_searched_for_both_kinds(cli: Cli) -> None:
    table = "apiVersion: eastgate.dev/v1alpha1\nkind: DecisionTest\nmetadata: {name: t}\nspec:\n  manifests: [m.yaml]\n"
    case = "  cases: [{from: sa:shop/cart, to: pod:shop/cards, port: 8443, expect: allow}]\n"
    Path("i.yaml").write_text(f"{invariant(ONLY_CART)}---\n{table}{case}---\n{invariant(ONLY_WEB, 'j')}")
    assert cli("test", ".").stdout.endswith("2 passed, 1 failed\n")


def test_one_that_does_not_shows_the_request_the_line_and_the_policy(cli: Cli) -> None:
    status, output = run(cli, invariant(ONLY_WEB))
    assert status == 1
    assert output == (
        "FAIL i.yaml:7 i: only\n"
        "     another caller's request is allowed: sa:shop/cart -> pod:shop/cards port 8443: "
        "AuthorizationPolicy/shop/cards rule 0 allows it\n"
        "     eastgate explain -f m.yaml --from sa:shop/cart --to pod:shop/cards --port 8443\n"
        "     AuthorizationPolicy/shop/cards rule 0 allows:\n"
        "       --> m.yaml:22:5\n"
        "        |\n"
        "     23 |       serviceAccounts: [cart]\n"
        "        |       ^^^^^^^^^^^^^^^^^^^^^^^ identity\n"
        "        |\n"
        "     24 |     networkAttributes: {ports: [8443]}\n"
        "        |                                ^^^^^^ port\n"
        "     to change: AuthorizationPolicy/shop/cards\n"
        "0 passed, 1 failed\n"
    )


def test_the_same_as_data(cli: Cli) -> None:
    statement = statement_of(cli, invariant(ONLY_WEB))
    example = statement["counterexample"]
    assert statement["standing"] == "broken"
    assert isinstance(example, dict)
    assert example["arguments"] == ["--from", "sa:shop/cart", "--to", "pod:shop/cards", "--port", "8443"]
    assert (example["verdict"], example["policy"], example["rule"]) == ("allow", "AuthorizationPolicy/shop/cards", 0)
    assert (example["file"], example["line"], example["exists"]) == ("m.yaml", 22, True)
    assert example["toChange"] == ["AuthorizationPolicy/shop/cards"]
    assert statement_of(cli, invariant(ONLY_CART)) == {"standing": "holds", "why": None, "counterexample": None}


def test_the_same_in_junit(cli: Cli) -> None:
    result = run(cli, invariant(ONLY_WEB), invariant(ONLY_CART, "j"), words=("-o", "junit"))[1]
    root = ET.fromstring(result)  # noqa: S314 - it is ours
    assert (root.get("tests"), root.get("failures")) == ("2", "1")
    failure = root.find(".//failure")
    assert failure is not None
    assert "eastgate explain -f m.yaml" in (failure.text or "")


def test_the_command_can_be_pasted_also_for_what_does_not_exist_yet(cli: Cli) -> None:
    anywhere = "never: {from: {any: true}, to: {pods: {matchLabels: {data: cards}}}, ports: [80]}"
    statement = statement_of(cli, invariant(anywhere, more="includeFuture: true"))
    example = statement["counterexample"]
    assert isinstance(example, dict)
    assert example["exists"] is False
    words = shlex.split(str(example["command"]))
    assert (words[:2], words[3:8]) == (["printf", "%s"], ["|", "eastgate", "explain", "-f", "m.yaml"])
    result = cli(*words[5:], stdin=words[2])
    assert result.exit_code == 0
    assert result.stdout.startswith("ALLOW")
    assert "pod:new-namespace-1/new-pod-2" in words


def test_inline_objects_and_settings_are_in_the_command(cli: Cli) -> None:
    more = "settings: {trustDomain: td}\n  objects: [{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: shop}}]"
    never = "never: {from: {any: true}, to: {pods: {}}}"
    statement = statement_of(cli, invariant(never, more=f"existingOnly: true\n  {more}"))
    example = statement["counterexample"]
    assert isinstance(example, dict)
    words = shlex.split(str(example["command"]))
    assert cli(*words[5:], stdin=words[2]).exit_code == 0
    assert words[words.index("--set") + 1] == "trustDomain=td"


def test_always(cli: Cli) -> None:
    always = f"always: {{from: {{serviceAccounts: [shop/cart]}}, to: {IN_SHOP}, ports: [8443]}}"
    assert run(cli, invariant(always))[0] == 0
    status, output = run(cli, invariant(always.replace("8443", "8444")))
    assert status == 1
    assert "a request that must always be allowed is denied" in output
    assert "to change: AuthorizationPolicy/shop/cards" in output


def test_a_service_is_asked_about_at_its_own_ports(cli: Cli) -> None:
    only = "only: {from: {serviceAccounts: [shop/web]}, to: {services: [shop/cards]}, ports: [443]}"
    assert "--to service:shop/cards --port 443" in run(cli, invariant(only))[1]
    assert run(cli, invariant(only.replace("shop/web", "shop/cart")))[0] == 0


# The callers of a statement


def test_who_does_not_exist_yet_counts_where_the_selector_covers_it(cli: Cli) -> None:
    Path("m.yaml").write_text(WORLD.replace("[cart]", '["new/*"]'))
    outside = f"never: {{from: {{except: {{namespaces: {{matchLabels: {{pci: 'true'}}}}}}}}, to: {IN_SHOP}}}"
    inside = f"never: {{from: {{namespaces: {{matchLabels: {{pci: 'true'}}}}}}, to: {IN_SHOP}}}"
    assert "sa:new/any-other -> pod:shop/cards" in run(cli, invariant(outside))[1]
    result = run(cli, invariant(inside))[1]
    assert "sa:new/any-other -> pod:shop/cards" in result
    assert "the caller's namespace does not exist yet, and would be labelled pci=true" in result


def test_trust_domains(cli: Cli) -> None:
    Path("m.yaml").write_text(WORLD.replace("[cart]", '[cart]\n      identities: ["spiffe://partner/settle"]'))
    never = f"never: {{from: {{identities: ['spiffe://partner/*']}}, to: {IN_SHOP}}}"
    assert "spiffe://partner/settle -> pod:shop/cards" in run(cli, invariant(never))[1]
    assert run(cli, invariant(never.replace("partner", "other")))[0] == 0
    Path("m.yaml").write_text(WORLD.partition("---\napiVersion: gateway")[0])
    assert "spiffe://other/stranger -> pod:shop/cards" in run(cli, invariant(never.replace("partner", "other")))[1]


# Not proven is not passed


def test_a_misspelt_name_is_no_statement_about_nothing(cli: Cli) -> None:
    Path("i.yaml").write_text(invariant("never: {from: {any: true}, to: {services: [shop/card]}}"))
    result = cli("test", "i.yaml")
    assert result.exit_code == 1
    assert "not proven: no manifest declares the Service shop/card" in result.stdout
    assert "EG0318" in result.stderr
    assert "did you mean `shop/cards`?" in result.stderr


def test_a_port_that_nothing_has(cli: Cli) -> None:
    Path("i.yaml").write_text(invariant("never: {from: {any: true}, to: {services: [shop/cards]}, ports: [444]}"))
    result = cli("test", "i.yaml")
    assert result.exit_code == 1
    assert "none of the named Services and Gateways has port 444" in result.stdout
    assert "write one of its ports: 443" in result.stderr


def test_labels_that_no_workload_has_are_warned_of(cli: Cli) -> None:
    closed = f"never: {{from: {{any: true}}, to: {IN_SHOP}, ports: [1]}}"
    text = invariant(closed.replace("data: cards", "data: cards, app: crads"), more="includeFuture: true")
    Path("i.yaml").write_text(text)
    result = cli("test", "i.yaml")
    assert (result.exit_code, "EG0319" in result.stderr) == (0, True)
    assert cli("test", "i.yaml", "--strict").exit_code == 1


@pytest.mark.parametrize("more", ["", "existingOnly: true"])
def test_labels_that_no_workload_has_make_it_about_nothing(cli: Cli, more: str) -> None:
    never = "never: {from: {any: true}, to: {pods: {matchLabels: {app: none}}}}"
    status, output = run(cli, invariant(never, more=more))
    assert status == 1
    assert "not proven: no manifest declares its destinations" in output


def test_what_is_not_read_keeps_it_from_being_proven(cli: Cli) -> None:
    network = "---\napiVersion: cilium.io/v2\nkind: CiliumNetworkPolicy\nmetadata: {name: closed, namespace: shop}\n"
    Path("m.yaml").write_text(WORLD + network + "spec: {endpointSelector: {}}\n")
    always = f"always: {{from: {{serviceAccounts: [shop/cart]}}, to: {IN_SHOP}, ports: [8443]}}"
    status, output = run(cli, invariant(always))
    assert status == 1
    assert "not proven: unread objects could change it: 1 CiliumNetworkPolicy" in output
    assert run(cli, invariant(always, more="unread: ignore"))[0] == 0
    assert run(cli, invariant(ONLY_CART))[0] == 0  # it can only deny more


def test_a_policy_that_cannot_be_read_keeps_it_from_being_proven(cli: Cli) -> None:
    broken = WORLD.partition("---\napiVersion: gateway")[2].replace("name: cards,", "name: b,").replace("ALLOW", "ALOW")
    Path("m.yaml").write_text(WORLD + "---\napiVersion: gateway" + broken)
    status, output = run(cli, invariant(ONLY_CART))
    assert status == 1
    assert "not proven: AuthorizationPolicy/shop/b cannot be read (m.yaml:" in output
    assert "0 passed, 2 failed" in output


def test_too_many_labels_are_not_proven_unless_only_what_exists_counts(cli: Cli) -> None:
    policy = WORLD.partition("---\napiVersion: gateway")[2]
    more = (policy.replace("name: cards,", f"name: p{n},").replace("data: cards", f"key{n}: v") for n in range(13))
    Path("m.yaml").write_text(WORLD + "".join(f"---\napiVersion: gateway{each}" for each in more))
    status, output = run(cli, invariant(ONLY_CART, more="includeFuture: true"))
    assert status == 1
    assert (
        "not proven: it is not proven for workloads that do not exist yet: policies select by too many labels" in output
    )
    assert run(cli, invariant(ONLY_CART))[0] == 0


def test_a_name_that_is_probably_misspelt_is_warned_of(cli: Cli) -> None:
    Path("i.yaml").write_text(invariant(f"never: {{from: {{serviceAccounts: [shop/carts]}}, to: {IN_SHOP}}}"))
    result = cli("test", "i.yaml")
    assert (result.exit_code, "EG0130" in result.stderr, "did you mean sa:shop/" in result.stderr) == (0, True, True)
    assert cli("test", "i.yaml", "--strict").exit_code == 1
