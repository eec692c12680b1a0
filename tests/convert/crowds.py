"""Generated policies that share pods: all in one namespace, on few pods, with overlapping selectors.

The clusters of `tests.worlds` have few overlaps; errors between policies show only with many.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from eastgate.settings import Settings
from tests.worlds import generate

Manifest = dict[str, Any]

SELECTORS = [
    {},
    {"matchLabels": {"app": "web"}},
    {"matchLabels": {"app": "web"}},
    {"matchLabels": {"app": "db"}},
    {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]},
]
LABELS = [{"app": "web"}, {"app": "db"}, {}]


def pod(name: str, labels: dict[str, str], ports: list[int]) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "a", "labels": labels},
        "spec": {
            "serviceAccountName": "x",
            "containers": [{"name": "c", "ports": [{"containerPort": port} for port in ports]}],
        },
    }


@st.composite
def policy(draw: st.DrawFn, name: str) -> Manifest:
    kind = draw(st.sampled_from(["v1alpha2", "v1alpha2", "v1alpha1", "x"]))
    if kind == "v1alpha2":
        found = draw(generate.v1alpha2(name, ambient=False))
    else:
        found = draw(generate.v1alpha1(name) if kind == "v1alpha1" else generate.x_policy(name))
    found["metadata"]["namespace"] = "a"
    selectors = draw(st.lists(st.sampled_from(SELECTORS), min_size=1, max_size=1 if kind == "x" else 2))
    found["spec"]["targetRefs"] = [{"kind": "Pod", "selector": selector} for selector in selectors]
    return found


@st.composite
def crowds(draw: st.DrawFn) -> tuple[list[Manifest], Settings]:
    pods = [pod(f"p{n}", labels, draw(st.sampled_from([[80], [80, 443], []]))) for n, labels in enumerate(LABELS)]
    policies = [draw(policy(f"q{n}")) for n in range(draw(st.integers(1, 3)))]
    written = {"trustDomain": draw(st.sampled_from(["td", "td", "cluster.local"]))}
    written["denyOnly"] = draw(st.sampled_from(["deny", "allow"]))
    return [*pods, *policies], Settings.from_mapping(written)
