"""Conversions to Linkerd and from it: the same if nothing is lost, and never more."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from eastgate import Authority, Question, Settings
from eastgate.authority.authority import programs_of
from eastgate.dialects.gep3779.settings import GepSettings
from tests.convert.conversions import Manifest, converted, is_policy
from tests.convert.crowds import crowds
from tests.worlds import generate, linkerd_generate
from tests.worlds.linkerd_oracle import ALL_POLICIES
from tests.worlds.test_generated_clusters import authority_of

# Questions ask about a service account where Linkerd has another name for it.
ACCOUNTS = [f"sa:{n}/{s}" for n in ("a", "b", "n", "m") for s in ("x", "y")]
SOURCES = ["anonymous", *ACCOUNTS, "spiffe://evil/ns/a/sa/x", "spiffe://td/ns/a/sa/x/deeper", "id:web.west.example.com"]
# No policy of Linkerd decides whether paths with encoded slashes are allowed.
HTTP = list(itertools.product(["GET", "POST"], [path for path in generate.PATHS if "%" not in path]))


def things(manifests: list[Manifest]) -> list[Manifest]:
    return [m for m in manifests if m["kind"] in ("Pod", "Service", "Namespace")]


def compare(pods: list[Manifest], before: Authority, after: Authority, losses: list[str], ports: list[int]) -> None:
    event("lossless" if not losses else "with losses")
    http = itertools.cycle(HTTP)
    for pod, source, port, address in itertools.product(pods, SOURCES, ports, ["10.1.2.3", "8.8.8.8"]):
        method, path = next(http)
        to = f"pod:{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        question = Question.of(source, to, port=port, method=method, path=path, host="h", source_ip=address)
        was, becomes = before.decide(question), after.decide(question)
        assert not becomes.allowed or was.allowed, ("wider", question, was.reason, becomes.reason)
        assert losses or becomes.allowed == was.allowed, ("other", question, was.reason, becomes.reason)


@st.composite
def with_ports(draw: st.DrawFn) -> tuple[list[Manifest], Settings]:
    """Draw a cluster of GEP-3779 whose pods declare some ports. Linkerd denies by default or not."""
    if draw(st.booleans()):
        manifests, _ = draw(crowds())
    else:
        manifests = draw(generate.clusters(ambient=False))
    for pod in (m for m in manifests if m["kind"] == "Pod" and "containers" not in m["spec"]):
        ports = draw(st.lists(st.sampled_from([80, 443, 9090]), max_size=2, unique=True))
        container: dict[str, Any] = {"name": "c", "ports": [{"containerPort": port} for port in ports]}
        pod["spec"]["containers"] = [container]
    written = {
        "trustDomain": "td",
        "denyOnly": draw(st.sampled_from(["deny", "allow"])),
        "linkerdDefaultPolicy": draw(st.sampled_from(["deny", "deny", "deny", "all-authenticated"])),
    }
    return manifests, Settings.from_mapping(written)


@settings(max_examples=200, deadline=None)
@given(with_ports())
def test_from_gep_3779_to_linkerd(situation: tuple[list[Manifest], Settings]) -> None:
    manifests, chosen = situation
    manifests = [m for m in manifests if not is_policy(m) or m["kind"] != "ClusterAuthorizationPolicy"]
    outcome = converted(manifests, "linkerd", chosen)
    # Before the conversion there is no Linkerd, so its default policy does not count.
    before = authority_of(
        manifests, Settings.from_mapping({**_written(chosen), "linkerdDefaultPolicy": "all-unauthenticated"})
    )
    after = authority_of([*things(manifests), *outcome.written, *outcome.kept], chosen)
    targeted = {pod for pod in before.world.workloads if programs_of(before).attached(pod)}
    pods = [m for m in manifests if m["kind"] == "Pod"]
    pods = [m for m in pods if f"{m['metadata']['namespace']}/{m['metadata']['name']}" in targeted]
    compare(pods, before, after, outcome.losses, [80, 443, 9090, 7])


def _written(chosen: Settings) -> dict[str, str]:
    return {"trustDomain": chosen.trust_domain, "denyOnly": str(chosen.section(GepSettings).deny_only)}


def _is_plain(manifest: Manifest) -> bool:
    """Return whether a manifest can be converted.

    Routes and policies on workloads prevent the conversion of all policies around them.
    """
    if "annotations" in manifest["metadata"] or manifest["kind"] in ("HTTPRoute", "GRPCRoute"):
        return False
    target = manifest["spec"].get("targetRef", {"kind": "Server"})
    return bool(target["kind"] in ("Server", "Namespace"))


@pytest.mark.parametrize("to", ["authorizationpolicy-v1alpha1", "authorizationpolicy-v1alpha2", "xauthorizationpolicy"])
@settings(max_examples=200, deadline=None)
@given(
    pods=linkerd_generate.pods,
    namespace=linkerd_generate.namespace,
    resources=linkerd_generate.resources.map(lambda found: [m for m in found if _is_plain(m)])
    | linkerd_generate.resources,
    default=st.sampled_from([*ALL_POLICIES, "deny"]),
)
def test_from_linkerd_to_gep_3779(
    to: str, pods: list[Manifest], namespace: Manifest, resources: list[Manifest], default: str
) -> None:
    chosen = Settings.from_mapping({"trustDomain": "td", "linkerdDefaultPolicy": default})
    manifests = [namespace, *pods, *resources]
    outcome = converted(manifests, to, chosen)
    before = authority_of(manifests, chosen)
    # Without policies of Linkerd, Linkerd itself may be removed, and its default policy with it.
    left = Settings.from_mapping({"trustDomain": "td"}) if not outcome.kept else chosen
    routes = [m for m in resources if m["apiVersion"].startswith("gateway.")] if outcome.kept else []
    bare = [namespace, *pods] if outcome.kept else [_without_annotations(m) for m in (namespace, *pods)]
    after = authority_of([*bare, *outcome.written, *outcome.kept, *routes], left)
    aimed = [m for m in pods if programs_of(after).attached(f"n/{m['metadata']['name']}")]
    compare(aimed, before, after, outcome.losses, linkerd_generate.PORTS)


def _without_annotations(manifest: Manifest) -> Manifest:
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": {}}}
