"""Removals that count at once: policies that can only have allowed requests."""

from __future__ import annotations

from pathlib import Path

import pytest

from eastgate.authority.authority import Authority
from eastgate.authority.reading import read_manifests
from eastgate.authority.sources.holding import HeldObjects, find_only_allowing
from eastgate.reading.manifests.watching.changes import SETTLING, is_being_written

_POD = """\
apiVersion: v1
kind: Pod
metadata: {name: cart, namespace: shop, labels: {app: cart}}
spec: {containers: [{name: cart, image: cart, ports: [{containerPort: 8080}]}]}
"""


def _policy(name: str, action: str, rules: str = "[{authorizationSource: {serviceAccounts: [web]}}]") -> str:
    return f"""\
---
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {{name: {name}, namespace: shop}}
spec:
  targetRefs: [{{kind: Pod, selector: {{matchLabels: {{app: cart}}}}}}]
  action: {action}
  rules: {rules}
"""


_ALLOW, _OTHER, _DENY = _policy("one", "ALLOW"), _policy("two", "ALLOW"), _policy("never", "DENY")
_NOBODY = _policy("nobody", "ALLOW", "[]")


@pytest.mark.parametrize(
    ("before", "after", "at_once"),
    [
        ((_ALLOW, _OTHER), (_OTHER,), {"one"}),
        ((_ALLOW, _OTHER), (_NOBODY,), {"one", "two"}),
        ((_ALLOW,), (), set()),  # without it the port is open
        ((_ALLOW, _OTHER), (), set()),
        ((_ALLOW, _DENY), (_ALLOW,), set()),
        ((_ALLOW, _OTHER, _DENY), (_OTHER,), set()),  # too costly to find out
        ((_ALLOW, _NOBODY), (_ALLOW,), set()),
        ((_ALLOW, _OTHER, _DENY), (_OTHER, _DENY), {"one"}),
    ],
)
def test_only_what_lets_in_is_removed_at_once(
    tmp_path: Path, before: tuple[str, ...], after: tuple[str, ...], at_once: set[str]
) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(_POD + "".join(before))
    first = read_manifests([path])
    path.write_text(_POD + "".join(after))
    second = read_manifests([path])
    gone = {one.ref for one in first.policies} - {one.ref for one in second.policies}
    assert {one.name for one in find_only_allowing(Authority(first), Authority(second), gone)} == at_once


def test_what_is_gone_is_held_until_it_has_been_gone_for_a_while(tmp_path: Path) -> None:
    path, holding = tmp_path / "a.yaml", HeldObjects()
    path.write_text(_POD + _ALLOW)
    first = read_manifests([path])

    def held(text: str, now: float) -> tuple[int, int]:
        path.write_text(text)
        found = read_manifests([path])
        wait = holding.hold(first, found, (), now, lambda *_: ())
        assert (wait is None) == (len(found.policies) + len(found.objects) < 2 or text == _POD + _ALLOW)
        return len(found.policies), len(found.objects)

    assert held("# nothing", 10) == (1, 1)
    assert held("# nothing", 10 + SETTLING / 2) == (1, 1)
    assert held(_POD + _ALLOW, 10 + SETTLING) == (1, 1)  # back again: the wait starts anew
    assert held(_POD, 10 + 2 * SETTLING) == (1, 1)
    assert held(_POD, 10 + 3 * SETTLING) == (0, 1)


def test_a_closing_policy_is_held_too(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(_POD + _policy("bad", "REFUSE"))
    first = read_manifests([path])
    assert len(first.closing) == 1
    path.write_text(_POD)
    found = read_manifests([path])
    HeldObjects().hold(first, found, (), 0, lambda *_: ())
    assert found.closing == first.closing


def test_a_file_that_is_open_for_writing_is_being_written(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("x")
    assert not is_being_written(str(path))
    with path.open("a"):
        assert is_being_written(str(path))
    with path.open("r"):
        assert not is_being_written(str(path))
    assert not is_being_written(str(tmp_path / "none.yaml"))
    assert not is_being_written(str(tmp_path))
