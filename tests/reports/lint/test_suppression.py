"""Suppressions: by the object of a finding, with a reason, and reported if they are useless."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from eastgate.authority.authority import Authority
from eastgate.authority.reading import sort_documents
from eastgate.cli import main
from eastgate.dialects import reads
from eastgate.reading.manifests import read_text
from eastgate.reports.lint import lint
from eastgate.settings import Settings

PODS = """
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web}, annotations: {WEB}}
spec: {containers: [{name: main, image: web, ports: [{containerPort: 8080}]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: cart, namespace: shop, labels: {app: cart}, annotations: {CART}}
spec: {containers: [{name: main, image: cart, ports: [{containerPort: 8080}]}]}
---
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {name: closed, namespace: shop, annotations: {POLICY}}
spec:
  targetRefs: [{kind: Pod, selector: {}}]
  action: ALLOW
  rules: []
"""


def found(policy: str = "", web: str = "", cart: str = "") -> list[str]:
    text = PODS
    for name, value in (("POLICY", policy), ("WEB", web), ("CART", cart)):
        text = text.replace(name, f'eastgate.dev/lint-ignore: "{value}"' if value else "")
    reading = read_text("shop.yaml", text, positioned=reads)
    authority = Authority(sort_documents(reading.documents, Settings(), reading.reporter))
    return [finding.code.id for finding in lint(authority)]


def test_without_a_suppression_the_finding_is_there() -> None:
    assert found() == ["EG6040"]


def test_the_policy_suppresses_it() -> None:
    assert found(policy="EG6040: closed until the launch") == []


def test_several_suppressions_are_separated_by_semicolons_or_line_breaks() -> None:
    assert found(policy="EG6040: closed until the launch; EG6003: nothing") == ["EG6091"]
    assert found(policy="EG6003: nothing\\nEG6040: closed until the launch") == ["EG6091"]


def test_a_suppression_without_a_reason_suppresses_nothing_and_is_a_finding() -> None:
    for written in ("EG6040", "EG6040:", "EG6040: ", "closed until the launch", "all: of it"):
        assert sorted(found(policy=written)) == ["EG6040", "EG6090"], written


def test_a_suppression_of_another_code_is_a_finding_too() -> None:
    assert sorted(found(policy="EG6041: wrong")) == ["EG6040", "EG6091"]


def test_of_several_workloads_all_must_suppress() -> None:
    assert found(web="EG6040: closed", cart="EG6040: closed") == []
    assert "EG6040" in found(web="EG6040: closed")


# Comments

COMMENTED = """{0}apiVersion: v1
kind: Pod
metadata: {{name: web, namespace: shop, labels: {{app: web}}}}
spec: {{containers: [{{name: main, image: web}}]}}
---
{1}apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {{name: p, namespace: shop}}
spec:
  podSelector: {{}}
  policyTypes: [Ingress]
  {2}ingress:
  {3}- from:
    - podSelector: {{matchLabels: {{app: none}}}}{4}
"""
IGNORE = "# eastgate: ignore EG6301 because the pods come later"


def commented(place: int, comment: str) -> list[str]:
    places = ["", "", "", "", ""]
    places[place] = f"  {comment}" if place == 4 else f"{comment}\n" + " " * (2 if place > 1 else 0)
    return found_in(COMMENTED.format(*places))


def found_in(manifests: str) -> list[str]:
    reading = read_text("shop.yaml", manifests, positioned=reads)
    authority = Authority(sort_documents(reading.documents, Settings(), reading.reporter))
    return sorted(finding.code.id for finding in lint(authority))


def test_a_comment_suppresses_in_its_document_its_block_or_its_line() -> None:
    assert commented(0, "# nothing") == ["EG6301"]
    assert [commented(place, IGNORE) for place in (1, 2, 3, 4)] == [[], [], [], []]


def test_a_comment_inside_the_block_of_a_finding_suppresses_it() -> None:
    """A finding about a selector underlines its first line, and users write comments beside the value."""
    block = """
  podSelector:
    matchLabels:
      # eastgate: ignore EG6001 because the pods come later
      app: later
"""
    policy = f"""apiVersion: v1
kind: Pod
metadata: {{name: web, namespace: shop, labels: {{app: web}}}}
spec: {{containers: [{{name: main, image: web}}]}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {{name: later, namespace: shop}}
spec:{block}"""
    assert found_in(policy) == []
    assert found_in(policy.replace(" eastgate", "")) == ["EG6001"]


def test_a_comment_elsewhere_suppresses_nothing_and_is_a_finding() -> None:
    assert commented(0, IGNORE) == ["EG6091", "EG6301"]


def test_a_comment_may_have_several_codes() -> None:
    assert commented(3, "# eastgate: ignore EG6301, EG6303: the pods come later") == ["EG6091"]


def test_a_comment_without_a_reason_suppresses_nothing_and_is_a_finding() -> None:
    for written in ("ignore EG6301", "ignore EG6301 because", "ignore EG6301:", "ignore", "ignore because of that"):
        assert commented(3, f"# eastgate: {written}") == ["EG6090", "EG6301"], written


# eastgate.yaml


def ignored(folder: Path, entry: str) -> tuple[int, str]:
    (folder / "shop.yaml").write_text(COMMENTED.format("", "", "", "", ""), encoding="utf-8")
    config = folder / "config.yaml"
    config.write_text(f"lint:\n  ignore:\n  - {entry}\n", encoding="utf-8")
    result = CliRunner().invoke(main, ["lint", "-f", str(folder / "shop.yaml"), "--config", str(config)])
    return result.exit_code, result.output


@pytest.mark.parametrize("about", ["", ", object: NetworkPolicy/shop/p", ", object: NetworkPolicy/*"])
def test_the_file_of_a_project_suppresses(tmp_path: Path, about: str) -> None:
    assert ignored(tmp_path, f"{{code: EG6301, reason: the pods come later{about}}}") == (0, "no findings\n")


def test_an_entry_that_suppresses_nothing_is_a_finding(tmp_path: Path) -> None:
    status, output = ignored(tmp_path, "{code: EG6301, reason: later, object: NetworkPolicy/other/*}")
    assert status == 1
    assert "EG6091" in output
    assert "EG6301" in output


@pytest.mark.parametrize("entry", ["{code: EG6301}", "{code: EG6301, reason: ''}", "{code: ports, reason: later}"])
def test_an_entry_without_a_code_or_a_reason_is_an_error(tmp_path: Path, entry: str) -> None:
    assert ignored(tmp_path, entry)[0] == 2
