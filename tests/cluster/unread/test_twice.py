"""Objects that are written twice or have errors: what they may be about has no answer, and everything else has."""

from __future__ import annotations

import pytest

from tests.cluster.unread.conftest import Run

POD = """\
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: {namespace}, labels: {{app: {app}}}}}
spec: {{containers: [{{name: c, image: c, ports: [{{containerPort: 80}}]}}]}}
"""
ELSEWHERE = POD.format(name="alone", namespace="elsewhere", app="alone")
TWICE = POD.format(name="two", namespace="twice", app="one") + POD.format(name="two", namespace="twice", app="other")


@pytest.mark.parametrize(
    ("source", "to", "status"),
    [
        ("sa:twice/default", "pod:elsewhere/alone", 0),
        ("pod:twice/two", "pod:elsewhere/alone", 2),
        ("sa:elsewhere/default", "pod:twice/two", 2),
    ],
)
def test_what_is_written_twice_closes_its_namespace(run: Run, source: str, to: str, status: int) -> None:
    done = run(ELSEWHERE + TWICE, "check", "--from", source, "--to", to, "--port", "80")
    assert done.exit_code == status, done.output
    assert ("EG1036" in done.stderr) is (status == 2)


_ROUTE = """\
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: r, namespace: twice}
spec: {parentRefs: [{name: g, namespace: elsewhere}], hostnames: [%s]}
"""


def test_routes_that_are_written_twice_close_everything_and_are_listed(run: Run) -> None:
    manifests = ELSEWHERE + _ROUTE % "a.example" + _ROUTE % "b.example"
    assert run(manifests, "check", "--from", "sa:a/b", "--to", "pod:elsewhere/alone", "--port", "80").exit_code == 2
    listed = run(manifests, "get", "workloads", "-A")
    assert listed.exit_code == 0
    assert "alone" in listed.stdout


def test_strict_answers_nothing(run: Run) -> None:
    words = ("check", "--strict", "--from", "sa:twice/default", "--to", "pod:elsewhere/alone", "--port", "80")
    assert run(ELSEWHERE + TWICE, *words).exit_code == 2


_NETWORK_POLICY = """\
---
apiVersion: k8s.cni.cncf.io/v1beta1
kind: MultiNetworkPolicy
metadata: {name: x, namespace: elsewhere}
spec: {podSelector: {matchLabels: {app: %s}}}
"""


def test_the_same_twice_is_once(run: Run) -> None:
    words = ("check", "--from", "sa:a/b", "--to", "pod:elsewhere/alone", "--port", "80")
    assert run(ELSEWHERE + _NETWORK_POLICY % "alone" * 2, *words).exit_code == 3
    assert run(ELSEWHERE + _NETWORK_POLICY % "x" + _NETWORK_POLICY % "alone", *words).exit_code == 2


def test_a_namespace_may_be_written_or_be_that_of_the_option(run: Run) -> None:
    manifests = ELSEWHERE + ELSEWHERE.replace(", namespace: elsewhere", "")
    words = ("check", "-n", "elsewhere", "--from", "sa:a/b", "--to", "pod:alone", "--port", "80")
    assert run(manifests, *words).exit_code == 0


def test_lint_says_so(run: Run) -> None:
    done = run(ELSEWHERE + TWICE, "lint")
    assert done.exit_code == 2
    assert "is written twice" in done.output


@pytest.mark.parametrize(
    "broken",
    [
        "kind: Gateway\napiVersion: gateway.networking.k8s.io/v1\nmetadata: {name: g, namespace: other}\nspec: 1\n",
        "kind: Namespace\napiVersion: v1\nmetadata: {name: other, labels: {a: 1}}\n",
    ],
)
def test_what_others_depend_on_closes_everything(run: Run, broken: str) -> None:
    done = run(f"{ELSEWHERE}---\n{broken}", "check", "--from", "sa:a/b", "--to", "pod:elsewhere/alone", "--port", "80")
    assert done.exit_code == 2
