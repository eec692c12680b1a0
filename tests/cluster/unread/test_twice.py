"""Objects that are written twice or have errors: they have no answer, and their surroundings a partial one."""

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
        ("sa:elsewhere/default", "pod:elsewhere/alone", 0),
        ("sa:twice/default", "pod:elsewhere/alone", 3),
        ("sa:elsewhere/default", "pod:twice/other", 3),
        ("pod:twice/two", "pod:elsewhere/alone", 2),
        ("sa:elsewhere/default", "pod:twice/two", 2),
    ],
)
def test_what_is_written_twice_is_closed_and_its_namespace_has_partial_answers(
    run: Run, source: str, to: str, status: int
) -> None:
    other = POD.format(name="other", namespace="twice", app="x")
    done = run(ELSEWHERE + TWICE + other, "check", "--from", source, "--to", to, "--port", "80")
    assert done.exit_code == status, done.output
    assert ("EG1036" in done.stderr) is (status == 2)
    assert ("(from what was read)" in done.stdout) is (status == 3)


_ROUTE = """\
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: r, namespace: twice}
spec: {parentRefs: [{name: g, namespace: elsewhere}], hostnames: [%s]}
"""


def test_routes_that_are_written_twice_leave_open_what_their_gateways_do(run: Run) -> None:
    manifests = ELSEWHERE + _ROUTE % "a.example" + _ROUTE % "b.example"
    done = run(manifests, "check", "--from", "sa:a/b", "--to", "pod:elsewhere/alone", "--port", "80")
    assert done.exit_code == 3
    assert "is written twice, with different `spec.hostnames[0]`" in done.stdout
    listed = run(manifests, "get", "workloads", "-A")
    assert listed.exit_code == 3
    assert "alone" in listed.stdout
    assert "left out: HTTPRoute twice/r" in listed.stderr


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
    done = run(ELSEWHERE + _NETWORK_POLICY % "x" + _NETWORK_POLICY % "alone", *words)
    assert done.exit_code == 3
    assert "(from what was read)" in done.stdout


def test_a_namespace_may_be_written_or_be_that_of_the_option(run: Run) -> None:
    manifests = ELSEWHERE + ELSEWHERE.replace(", namespace: elsewhere", "")
    words = ("check", "-n", "elsewhere", "--from", "sa:a/b", "--to", "pod:alone", "--port", "80")
    assert run(manifests, *words).exit_code == 0


def test_lint_says_so(run: Run) -> None:
    done = run(ELSEWHERE + TWICE, "lint")
    assert done.exit_code == 1
    assert "is written twice" in done.output


@pytest.mark.parametrize(
    ("broken", "source", "status"),
    [
        (
            "kind: Gateway\napiVersion: gateway.networking.k8s.io/v1\nmetadata: {name: g, namespace: other}\nspec: 1\n",
            "sa:a/b",
            3,
        ),
        ("kind: Namespace\napiVersion: v1\nmetadata: {name: other, labels: {a: 1}}\n", "sa:a/b", 0),
        ("kind: Namespace\napiVersion: v1\nmetadata: {name: other, labels: {a: 1}}\n", "sa:other/b", 3),
        ("kind: Namespace\napiVersion: v1\nmetadata: {name: elsewhere, labels: {a: 1}}\n", "sa:a/b", 3),
    ],
)
def test_what_others_depend_on_leaves_open_what_it_may_be_about(
    run: Run, broken: str, source: str, status: int
) -> None:
    done = run(f"{ELSEWHERE}---\n{broken}", "check", "--from", source, "--to", "pod:elsewhere/alone", "--port", "80")
    assert done.exit_code == status
