"""On generated Istio resources the engine, the reference evaluator and the oracle give the same answers."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from eastgate import Decision, Question, Settings
from eastgate.authority.authority import Authority
from eastgate.engine import reference
from tests.worlds import istio_generate as generate
from tests.worlds.istio_ambient_oracle import Ambient
from tests.worlds.istio_injection_oracle import Injection
from tests.worlds.istio_oracle import Call, Manifest, MeshConfig, Sidecars
from tests.worlds.test_generated_clusters import authority_of


def settings_of(config: MeshConfig, plane: str) -> Settings:
    own, *aliases = config.trust_domains
    return Settings.from_mapping(
        {
            "istioDataPlane": plane,
            "dataPlane": "native",
            "rootNamespace": config.root,
            "trustDomain": own,
            "trustDomainAliases": aliases,
            "pathNormalization": config.normalization,
        }
    )


def decided(authority: Authority, to: str, call: Call, config: MeshConfig) -> Decision:
    """Decide a call without unknown attributes."""
    fields: dict[str, Any] = {
        "source": call.identity or f"ip:{call.address}",
        "destination": to,
        "port": call.port,
        "source_ip": call.address,
        "forwarded_for": call.forwarded_for,
        "external_auth": {f"{name}.authz:9000": answer for name, _, answer in config.providers},
        "plaintext": call.identity is None,
    }
    if call.identity is not None:
        fields["sni"] = call.sni
    if call.is_http:
        headers: dict[str, list[str]] = {}
        for name, value in call.headers:
            headers.setdefault(name.lower(), []).append(value)
        fields |= {"method": call.method, "path": call.path, "host": call.host, "headers": headers}
        fields["claims"] = call.claims
    return authority.decide(Question.of(**fields))


def checked(decision: Decision, expected: int, about: object) -> None:
    assert decision.allowed == (expected == 200), (about, expected, decision.reason)
    assert decision.allowed or decision.status == expected, (about, decision.reason)
    assert decision.outcome == reference.decide(decision.layers, decision.arrival.request)


def address_of(target: Manifest) -> str:
    return f"{target['kind'].lower()}:{target['metadata']['namespace']}/{target['metadata']['name']}"


def without_name(call: Call) -> Call:
    """Return a plaintext call without a server name, which only TLS has."""
    return call if call.identity is not None else replace(call, sni="")


@settings(max_examples=80, deadline=None)
@given(generate.resources(), st.sampled_from(generate.CONFIGS), generate.calls)
def test_sidecars(resources: list[Manifest], config: MeshConfig, calls: list[Call]) -> None:
    providers = [generate.mesh_config(config), *generate.provider_services(config)]
    authority = authority_of([*generate.PODS, *providers, *resources], settings_of(config, "sidecar"))
    mesh = Sidecars(resources, config)
    for pod in generate.PODS:
        for call in map(without_name, calls):
            decision = decided(authority, address_of(pod), call, config)
            checked(decision, mesh.status(pod, call), (address_of(pod), call))


@settings(max_examples=80, deadline=None)
@given(generate.resources(), generate.injections(), st.sampled_from(generate.CONFIGS), generate.calls)
def test_sidecars_that_labels_give_or_leave_unknown(
    resources: list[Manifest],
    injections: tuple[list[Manifest], list[Manifest]],
    config: MeshConfig,
    calls: list[Call],
) -> None:
    pods, namespaces = injections
    providers = [generate.mesh_config(config), *generate.provider_services(config)]
    authority = authority_of([*pods, *namespaces, *providers, *resources], settings_of(config, "auto"))
    mesh = Injection([*pods, *namespaces, *resources], config)
    for pod, caller in product(pods, pods):
        for call in (call for call in calls if call.is_http):
            known = replace(call, identity=address_of(caller))
            decision = decided(authority, address_of(pod), known, config)
            assert decision.allowed is mesh.allows(caller, pod, call), (address_of(caller), address_of(pod), call)
            assert decision.outcome == reference.decide(decision.layers, decision.arrival.request)


@settings(max_examples=80, deadline=None)
@given(generate.resources(ambient=True), generate.waypoints(), st.sampled_from(generate.CONFIGS), generate.calls)
def test_ambient(resources: list[Manifest], waypoints: list[Manifest], config: MeshConfig, calls: list[Call]) -> None:
    manifests = [*generate.PODS, *waypoints, *resources]
    providers = [generate.mesh_config(config), *generate.provider_services(config)]
    authority = authority_of([*manifests, *providers], settings_of(config, "ambient"))
    mesh = Ambient(manifests, config)
    _, service, _ = waypoints
    targets = [(pod, pod) for pod in generate.PODS] + [(service, generate.PODS[0])]
    for call in map(without_name, calls):
        for target, pod in targets:
            if target is service and (not call.is_http or call.identity is None or call.port != 80):
                continue  # its port is for HTTP, and callers outside the mesh bypass waypoints
            expected = mesh.status_of_service(service, pod, call) if target is service else mesh.status(pod, call)
            if expected is not None:
                checked(decided(authority, address_of(target), call, config), expected, (address_of(target), call))


@settings(max_examples=30, deadline=None)
@given(generate.resources(), st.sampled_from(generate.CONFIGS), generate.calls, st.randoms(use_true_random=False))
def test_the_order_of_resources_changes_nothing(
    resources: list[Manifest], config: MeshConfig, calls: list[Call], random: st.DataObject
) -> None:
    shuffled = list(resources)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    providers = [generate.mesh_config(config), *generate.provider_services(config)]
    chosen = settings_of(config, "sidecar")
    one, other = (authority_of([*generate.PODS, *providers, *each], chosen) for each in (resources, shuffled))
    for pod in generate.PODS:
        for call in map(without_name, calls):
            answers = [decided(authority, address_of(pod), call, config) for authority in (one, other)]
            assert len({(answer.status, answer.allowed) for answer in answers}) == 1
