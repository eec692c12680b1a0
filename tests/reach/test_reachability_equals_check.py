"""On generated worlds of every dialect, reachability and `check` agree on each question."""

from __future__ import annotations

import itertools
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from eastgate import ManifestError, Question, Settings
from eastgate.cluster import service_account_id
from eastgate.ir import Request
from eastgate.ir.attributes import IDENTITY
from eastgate.settings import DataPlane
from tests.differential import istio_policies
from tests.differential.gateways import drawing as gateways
from tests.differential.gateways.corpus import asks
from tests.differential.world import PODS, WORLD
from tests.reach.asking import compare_with_check, compare_with_engine, reachability
from tests.worlds import access_generate, kuadrant_generate, linkerd_generate, network_generate
from tests.worlds.kuadrant_oracle import Call as HttpCall
from tests.worlds.linkerd_oracle import ALL_POLICIES, Call, Manifest, account_name
from tests.worlds.network_oracle import Ask
from tests.worlds.test_generated_access import every_call, question
from tests.worlds.test_generated_clusters import authority_of, every_request, situations
from tests.worlds.test_generated_kuadrant import TO, accepted
from tests.worlds.test_generated_linkerd import request_of


@settings(max_examples=40, deadline=None)
@given(situations())
def test_of_policies_on_workloads(situation: tuple[list[Manifest], Settings]) -> None:
    authority = authority_of(*situation)
    reach = reachability(authority)
    world = authority.world
    targets = [f"pod:{key}" for key in world.workloads]
    targets += [f"service:{key}" for key in world.services if world.pods_of(key)]
    for to in targets:
        for identity, port, method, path in [*every_request(), ("spiffe://td/ns/new/sa/z", 8080, "GET", "/api")]:
            compare_with_check(
                reach, authority, Question.of(identity or "anonymous", to, port=port, method=method, path=path)
            )


_ACCOUNTS = {account_name(namespace, "x"): f"sa:{namespace}/x" for namespace in ("n", "m")}


@settings(max_examples=60, deadline=None)
@given(
    linkerd_generate.pods,
    linkerd_generate.namespace,
    linkerd_generate.resources,
    st.sampled_from(ALL_POLICIES),
    st.sampled_from(DataPlane),
    linkerd_generate.calls,
)
def test_of_linkerds_resources(
    pods: list[Manifest],
    namespace: Manifest,
    resources: list[Manifest],
    default: str,
    plane: DataPlane,
    calls: list[Call],
) -> None:
    chosen = Settings.from_mapping({"linkerdDefaultPolicy": default, "dataPlane": plane})
    authority = authority_of([namespace, *pods, *resources], chosen)
    reach = reachability(authority)
    for pod, call in itertools.product(pods, calls):
        if call.address == "127.0.0.1":  # the workload calls itself
            continue
        key = f"n/{pod['metadata']['name']}"
        compare_with_engine(reach, key, _identified(request_of(call, plane), call.name))
        if call.method is not None:
            headers = dict(call.headers)
            to, caller = f"pod:{key}", _caller(call.name)
            asked = Question.of(
                caller,
                to,
                port=call.port,
                method=call.method,
                path=call.path,
                host=call.host,
                headers=headers,
                source_ip=call.address,
            )
            compare_with_check(reach, authority, asked)


def _identified(request: Request, name: str | None) -> Request:
    """Return the request of an account, with its SPIFFE ID."""
    source = _caller(name)
    if source.startswith("sa:"):
        return request.with_value(IDENTITY, service_account_id("cluster.local", *source[3:].split("/")))
    return request.with_value(IDENTITY, source) if source.startswith("spiffe:") else request


def _caller(name: str | None) -> str:
    if name is None:
        return "anonymous"
    return _ACCOUNTS.get(name) or (name if name.startswith("spiffe:") else f"id:{name}")


@settings(max_examples=40, deadline=None)
@given(access_generate.policies, access_generate.answers, st.sampled_from(["deny", "proceed"]))
def test_of_access_policies(policies: list[Manifest], answers: dict[str, str], unlisted: str) -> None:
    chosen = Settings.from_mapping({"trustDomain": "td", "unlistedCaller": unlisted})
    authority = authority_of([*access_generate.FIXED, *policies], chosen)
    reach = reachability(authority)
    targets = ["gateway:n/g", *(f"backend:n/{backend}" for backend in access_generate.BACKENDS)]
    for to, call in itertools.product(targets, every_call("b1")):
        compare_with_check(reach, authority, question(call, to, answers))


@settings(max_examples=200, deadline=None)
@given(kuadrant_generate.clusters(), kuadrant_generate.calls)
def test_of_auth_policies(manifests: list[Manifest], calls: list[HttpCall]) -> None:
    authority = authority_of(accepted(manifests), Settings())
    reach = reachability(authority)
    for call in calls:
        claims = None if call.claims is None else json.loads(call.claims)
        headers = dict(call.headers)
        asked = Question.of(
            "anonymous",
            TO[None],
            port=80,
            method=call.method,
            path=call.path,
            host=call.host,
            sni=call.sni,
            headers=headers,
            claims=claims,
        )
        compare_with_check(reach, authority, asked)


@settings(max_examples=25, deadline=None)
@given(gateways.worlds(), gateways.chosen_settings(), st.integers(0, 10_000))
def test_of_gateways_with_listeners_and_routes(manifests: list[Manifest], chosen: Settings, seed: int) -> None:
    try:
        authority = authority_of(manifests, chosen)
    except ManifestError:
        return  # the workload is closed as a whole
    reach = reachability(authority)
    for ask in asks(manifests, seed, callers=4, requests=12):
        for asked in ask.questions():
            compare_with_check(reach, authority, asked)


@settings(max_examples=25, deadline=None)
@given(network_generate.situations())
def test_of_network_policies(situation: tuple[list[Manifest], list[Ask]]) -> None:
    manifests, asked = situation
    authority = authority_of(manifests, Settings())
    reach = reachability(authority)
    for ask in asked:
        kind = ask.to.partition(":")[0]
        if authority.world.by_ip(ask.source_ip or ask.source.removeprefix("ip:")) is not None:
            continue  # reachability treats the address as outside
        if kind in ("pod", "service") and ask.protocol == "tcp" and ask.port is not None:
            compare_with_check(
                reach, authority, Question.of(ask.source, ask.to, port=ask.port, source_ip=ask.source_ip)
            )


_HTTP = (("GET", "/a"), ("POST", "/a/b"), ("GET", "/"), (None, None))
_CALLERS = ("sa:a/x", "sa:b/y", "sa:elsewhere/x", "spiffe://evil/ns/a/sa/x", "spiffe://td/workload", "anonymous")


@settings(max_examples=20, deadline=None)
@given(istio_policies.istio(), st.sampled_from(DataPlane), st.sampled_from(["sidecar", "ambient"]))
def test_of_policies_of_istio(policies: list[Manifest], plane: DataPlane, proxies: str) -> None:
    chosen = Settings.from_mapping({"trustDomain": "td", "dataPlane": plane, "istioDataPlane": proxies})
    authority = authority_of([*WORLD, *policies], chosen)
    reach = reachability(authority)
    for caller, pod, port, (method, path) in itertools.product(_CALLERS, PODS, (80, 443, 9), _HTTP):
        http = {} if method is None else {"method": method, "path": path, "host": "h", "headers": {"x-a": "1"}}
        asked = Question.of(caller, f"pod:{pod}", port=port, source_ip="10.0.0.7", **http)  # type: ignore[arg-type]
        compare_with_check(reach, authority, asked)
