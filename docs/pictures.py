"""The pictures of `guides/exploring.md`, which `eastgate graph` draws of examples and of clusters made up here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from eastgate import Authority, Settings, load
from eastgate.authority.reading import read_plain
from eastgate.reports.graph import make_graph, render, survey
from eastgate.reports.graph.making import MOST_NODES

IMAGES = Path(__file__).parent / "images"
EXAMPLES = Path(__file__).parents[1] / "examples"
_APPS = ("api", "web", "worker", "cache", "store")
_NAMESPACES = ("billing", "catalog", "delivery", "identity", "media", "orders", "search", "stock")


def pictures() -> Iterator[tuple[Path, str]]:
    """Every picture, with the file that it is in."""
    for name in ("shop", "agents", "boutique"):
        yield IMAGES / f"graph-{name}.svg", _picture(load(EXAMPLES / name / "manifests"))
    yield IMAGES / "graph-40.svg", _picture(_fleet(_NAMESPACES, 1))
    yield IMAGES / "graph-400.svg", _picture(_fleet([f"{name}-{n}" for name in _NAMESPACES for n in (1, 2)], 5))


def _picture(authority: Authority) -> str:
    return render(make_graph(survey(authority), why=False, most=MOST_NODES, pods=True), "svg")


def _fleet(namespaces: list[str] | tuple[str, ...], copies: int) -> Authority:
    """A cluster of so many workloads, in which each is called by a few, and everything by those who watch it."""
    workloads = [(space, f"{app}{n or ''}") for space in namespaces for n in range(copies) for app in _APPS]
    objects: list[dict[str, Any]] = [_pod(space, name) for space, name in workloads]
    for number, (space, name) in enumerate(workloads):
        callers = [(space, "web"), workloads[(number * 7 + 3) % len(workloads)]]
        callers += [workloads[(number * 5 + 11) % len(workloads)]] if number % 3 == 0 else []
        rules = [_rule([f"{at}/{who}" for at, who in callers if (at, who) != (space, name)], 8080)]
        if name == "store":
            rules.append(_rule([f"{namespaces[0]}/worker"], 9000))
        objects.append(_policy(space, name, rules))
    return Authority(read_plain(objects, Settings()))


def _pod(namespace: str, name: str) -> dict[str, Any]:
    container = {"name": "c", "image": "x", "ports": [{"containerPort": 8080}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
        "spec": {"serviceAccountName": name, "containers": [container]},
    }


def _rule(callers: list[str], port: int) -> dict[str, Any]:
    accounts = {"serviceAccounts": list(dict.fromkeys(callers))}
    return {"authorizationSource": accounts, "networkAttributes": {"ports": [port]}}


def _policy(namespace: str, app: str, rules: list[dict[str, Any]]) -> dict[str, Any]:
    target = {"kind": "Pod", "selector": {"matchLabels": {"app": app}}}
    return {
        "apiVersion": "gateway.networking.x-k8s.io/v1alpha2",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": app, "namespace": namespace},
        "spec": {"targetRefs": [target], "action": "ALLOW", "rules": rules},
    }


if __name__ == "__main__":
    for path, text in pictures():
        path.write_text(text, encoding="utf-8")
