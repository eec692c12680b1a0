"""Generated policy sets for the small world: those of `tests.worlds`, with harder paths and local networks."""

from __future__ import annotations

import copy
from dataclasses import replace

from hypothesis import strategies as st

from eastgate import Settings
from eastgate.dialects.gep3779.settings import DenyOnly, GepSettings
from eastgate.dialects.linkerd.settings import InboundPolicy, LinkerdSettings
from eastgate.settings import MeshMode
from tests.differential.istio_policies import istio
from tests.differential.linkerd_policies import linkerd
from tests.differential.world import SETTINGS, Manifest
from tests.worlds import generate

__all__ = ["chosen_settings", "policy_sets"]

PATTERNS = [
    *generate.PATTERNS,
    *("/a/b", "/a/*", "/A", "/a/", "*/b", "/a;b", "/a%20b", "*a", "/.*", "/a%22b", "/é", "/+", "*/", "/a*"),
    *(
        "/@me",
        "/%40me",
        "*:b",
        "/$m",
        "/caf\u00e9/*",
        "/caf%c3%a9",
        "/a b",
        "*0me",
        "*data",
        "/[a]",
        "/a%2A",
        "/x%*",
        "*9/x",
    ),
    *("/a%4*", "*%a9", "/a:*", "*5D"),
]
METHODS = ["GET", "POST", "HEAD", "get"]
_levels = {
    MeshMode.SIDECAR: [
        lambda name: generate.v1alpha2(name, ambient=False),
        generate.v1alpha1,
        generate.x_policy,
        generate.cluster_policy,
    ],
    MeshMode.AMBIENT: [lambda name: generate.v1alpha2(name, ambient=True), generate.cluster_policy],
}


@st.composite
def _gep(draw: st.DrawFn, name: str, mode: MeshMode = MeshMode.SIDECAR) -> Manifest:
    manifest: Manifest = copy.deepcopy(draw(draw(st.sampled_from(_levels[mode]))(name)))
    for rule in manifest["spec"].get("rules", ()):
        asked = rule.get("applicationAttributes", {})
        if asked.get("paths"):
            asked["paths"] = draw(st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=2))
        if asked.get("methods"):
            asked["methods"] = draw(st.lists(st.sampled_from(METHODS), min_size=1, max_size=2))
    return manifest


@st.composite
def _geps(draw: st.DrawFn) -> list[Manifest]:
    policies = [draw(_gep(f"q{n}")) for n in range(draw(st.integers(0, 5)))]
    return policies + [draw(generate.cluster_policy(f"c{n}")) for n in range(draw(st.integers(0, 2)))]


_AUDITABLE = ("AuthorizationPolicy", "ClusterAuthorizationPolicy", "Server", "ServerAuthorization")


@st.composite
def policy_sets(draw: st.DrawFn) -> list[Manifest]:
    which = draw(st.sampled_from(["gep", "linkerd", "istio", "istio", "gep linkerd", "gep istio", "linkerd istio"]))
    drawn = {"gep": _geps, "linkerd": linkerd, "istio": istio}
    policies = [policy for dialect in which.split() for policy in draw(drawn[dialect]())]
    for policy in policies:
        if policy["kind"] in _AUDITABLE and draw(st.integers(0, 4)) == 0:
            annotations = policy["metadata"].setdefault("annotations", {})
            annotations.setdefault("eastgate.dev/mode", "audit")
    return policies


@st.composite
def ambient_policy_sets(draw: st.DrawFn) -> list[Manifest]:
    """Policies that an ambient mesh accepts: of the network level by labels, of the application level by Service."""
    policies = [draw(_gep(f"q{n}", MeshMode.AMBIENT)) for n in range(draw(st.integers(1, 6)))]
    for policy in policies:
        if draw(st.integers(0, 4)) == 0:
            policy["metadata"].setdefault("annotations", {}).setdefault("eastgate.dev/mode", "audit")
    return policies


@st.composite
def chosen_settings(draw: st.DrawFn) -> Settings:
    gep = GepSettings(deny_only=draw(st.sampled_from(DenyOnly)))
    return replace(SETTINGS, sections=(gep, LinkerdSettings(draw(st.sampled_from(InboundPolicy)))))
