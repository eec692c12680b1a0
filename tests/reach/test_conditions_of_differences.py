"""The condition of a difference holds exactly for the requests whose verdict changes."""

from __future__ import annotations

from typing import Any

from eastgate import Settings
from eastgate.ir import Request
from eastgate.ir.attributes import METHOD, PATH
from eastgate.ir.symbolic.trees import truth
from eastgate.reach.differences import compare
from tests.worlds.test_generated_clusters import authority_of

Manifest = dict[str, Any]
_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "shop", "labels": {"app": "p"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}


def _policy(name: str, action: str, paths: list[str]) -> Manifest:
    return {
        "apiVersion": "gateway.networking.x-k8s.io/v1alpha2",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "enforcementLevel": "APPLICATION",
            "targetRefs": [{"kind": "Pod", "selector": {"matchLabels": {"app": "p"}}}],
            "action": action,
            "rules": [{"applicationAttributes": {"methods": ["GET"], "paths": [path]}} for path in paths],
        },
    }


def test_every_exception_counts() -> None:
    closed = [f"/x/{number}" for number in range(30)]
    deny = _policy("closed", "DENY", closed)
    old = authority_of([_POD, deny, _policy("open", "ALLOW", ["/other"])], Settings())
    new = authority_of([_POD, deny, _policy("open", "ALLOW", ["/other", "/x/*"])], Settings())
    (difference,) = compare(old, new).differences
    assert truth(difference.when, Request({METHOD: "GET", PATH: "/x/any"})) is True
    for path in closed:
        assert truth(difference.when, Request({METHOD: "GET", PATH: path})) is False
