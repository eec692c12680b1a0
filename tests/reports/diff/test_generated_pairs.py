"""On generated pairs of worlds of every dialect, a comparison is right about every sampled request."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from eastgate import Authority, Question, Settings
from eastgate.cluster.ends import Pod
from eastgate.settings import DataPlane
from tests.reports.diff.sampling import check_pair
from tests.worlds import access_generate, generate, kuadrant_generate, linkerd_generate
from tests.worlds.kuadrant_oracle import Call as HttpCall
from tests.worlds.linkerd_oracle import ALL_POLICIES, Call, Manifest, account_name
from tests.worlds.test_generated_access import every_call, question
from tests.worlds.test_generated_clusters import authority_of, every_request, situations
from tests.worlds.test_generated_kuadrant import TO, accepted

_WORLD = ("Pod", "Service", "Namespace", "Gateway", "HTTPRoute", "Secret", "Backend", "XBackend")
_ODD_PATHS = ("/api%2Fx", "/any%2Fother", "/api/%21")


@st.composite
def _changed(draw: st.DrawFn, manifests: list[Manifest], others: list[Manifest]) -> list[Manifest]:
    """Draw the manifests with one policy removed, added or replaced."""
    policies = [one for one in manifests if one["kind"] not in _WORLD]
    more = [one for one in others if one["kind"] not in _WORLD]
    left = list(manifests)
    less, adds = draw(st.tuples(st.booleans(), st.booleans()))
    if policies and less:
        left.remove(draw(st.sampled_from(policies)))
    if more and adds:
        added = draw(st.sampled_from(more))
        left = [one for one in left if _name(one) != _name(added)] + [added]
    return left


def _name(manifest: Manifest) -> tuple[str, str, str | None, str]:
    metadata = manifest["metadata"]
    return manifest["apiVersion"].partition("/")[0], manifest["kind"], metadata.get("namespace"), metadata["name"]


@settings(max_examples=60, deadline=None)
@given(st.data(), situations())
def test_of_policies_on_workloads(data: st.DataObject, situation: tuple[list[Manifest], Settings]) -> None:
    manifests, chosen = situation
    others = data.draw(generate.clusters(ambient=str(chosen.mesh_mode) == "ambient"))
    changed = data.draw(_changed(manifests, others))
    old, new = authority_of(manifests, chosen), authority_of(changed, chosen)
    check_pair(old, new, _questions_to_workloads(old))


@settings(max_examples=40, deadline=None)
@given(st.data(), situations())
def test_of_workloads_that_change_too(data: st.DataObject, situation: tuple[list[Manifest], Settings]) -> None:
    manifests, chosen = situation
    others = data.draw(generate.clusters(ambient=str(chosen.mesh_mode) == "ambient"))
    # the pods behind a Service do not affect verdicts
    services = [one for one in manifests if one["kind"] == "Service"]
    kept = [one for one in others if one["kind"] not in ("Service", "Pod")]
    pods = [one for one in manifests if one["kind"] == "Pod"]
    relabelled = [{**pod, "metadata": {**pod["metadata"], "labels": {"app": "new"}}} for pod in pods[:1]]
    old, new = authority_of(manifests, chosen), authority_of([*relabelled, *pods[1:], *services, *kept], chosen)
    check_pair(old, new, (each for each in _questions_to_workloads(old) if isinstance(each.destination, Pod)))


def _questions_to_workloads(authority: Authority) -> Iterator[Question]:
    targets = [f"pod:{key}" for key in authority.world.workloads]
    targets += [f"service:{key}" for key in authority.world.services if authority.world.pods_of(key)]
    odd = ((identity, 80, "GET", path) for identity in [None, *generate.IDENTITIES] for path in _ODD_PATHS)
    requests = [*every_request(), *odd, ("spiffe://td/ns/new/sa/z", 8080, "GET", "/api")]
    for to, (identity, port, method, path) in itertools.product(targets, requests):
        yield Question.of(identity or "anonymous", to, port=port, method=method, path=path)


_ACCOUNTS = {account_name(namespace, "x"): f"sa:{namespace}/x" for namespace in ("n", "m")}


@settings(max_examples=60, deadline=None)
@given(
    st.data(),
    linkerd_generate.pods,
    linkerd_generate.namespace,
    linkerd_generate.resources,
    linkerd_generate.resources,
    st.sampled_from(ALL_POLICIES),
    st.sampled_from(DataPlane),
    linkerd_generate.calls,
)
def test_of_linkerds_resources(
    data: st.DataObject,
    pods: list[Manifest],
    namespace: Manifest,
    resources: list[Manifest],
    others: list[Manifest],
    default: str,
    plane: DataPlane,
    calls: list[Call],
) -> None:
    chosen = Settings.from_mapping({"linkerdDefaultPolicy": default, "dataPlane": plane})
    manifests = [namespace, *pods, *resources]
    changed = data.draw(_changed(manifests, others))
    old, new = authority_of(manifests, chosen), authority_of(changed, chosen)
    check_pair(old, new, _linkerd_questions(pods, calls))


def _linkerd_questions(pods: list[Manifest], calls: list[Call]) -> Iterator[Question]:
    for pod, call in itertools.product(pods, calls):
        if call.address == "127.0.0.1" or call.method is None:  # the caller itself
            continue
        name = call.name
        caller = "anonymous" if name is None else _ACCOUNTS.get(name) or (name if ":" in name else f"id:{name}")
        to = f"pod:n/{pod['metadata']['name']}"
        yield Question.of(
            caller,
            to,
            port=call.port,
            method=call.method,
            path=call.path,
            host=call.host,
            headers=dict(call.headers),
            source_ip=call.address,
        )


@settings(max_examples=50, deadline=None)
@given(
    st.data(),
    access_generate.policies,
    access_generate.policies,
    access_generate.answers,
    st.sampled_from(["deny", "proceed"]),
)
def test_of_access_policies(
    data: st.DataObject,
    policies: list[Manifest],
    others: list[Manifest],
    answers: dict[str, str],
    unlisted: str,
) -> None:
    chosen = Settings.from_mapping({"trustDomain": "td", "unlistedCaller": unlisted})
    changed = data.draw(_changed(policies, others))
    old, new = (authority_of([*access_generate.FIXED, *some], chosen) for some in (policies, changed))
    targets = ["gateway:n/g", *(f"backend:n/{backend}" for backend in access_generate.BACKENDS)]
    check_pair(old, new, (question(call, to, answers) for to, call in itertools.product(targets, every_call("b1"))))


@settings(max_examples=80, deadline=None)
@given(st.data(), kuadrant_generate.clusters(), kuadrant_generate.clusters(), kuadrant_generate.calls)
def test_of_auth_policies(
    data: st.DataObject, manifests: list[Manifest], others: list[Manifest], calls: list[HttpCall]
) -> None:
    changed = data.draw(_changed(manifests, others))
    old, new = (authority_of(accepted(some), Settings()) for some in (manifests, changed))
    check_pair(old, new, map(_http_question, calls))


@settings(max_examples=40, deadline=None)
@given(kuadrant_generate.clusters(), kuadrant_generate.clusters(), kuadrant_generate.calls)
def test_of_routes_that_change_too(manifests: list[Manifest], others: list[Manifest], calls: list[HttpCall]) -> None:
    routes = [one for one in others if one["kind"] == "HTTPRoute"]
    changed = [*(one for one in manifests if one["kind"] != "HTTPRoute"), *routes]
    old, new = (authority_of(accepted(some), Settings()) for some in (manifests, changed))
    check_pair(old, new, map(_http_question, calls))


def _http_question(call: HttpCall) -> Question:
    claims = None if call.claims is None else json.loads(call.claims)
    return Question.of(
        "anonymous",
        TO[None],
        port=80,
        method=call.method,
        path=call.path,
        host=call.host,
        sni=call.sni,
        headers=dict(call.headers),
        claims=claims,
    )
