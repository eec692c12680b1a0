"""Lint reports exactly the routes that another spelling of the path avoids."""

from __future__ import annotations

import shlex
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from eastgate import Settings
from eastgate.dialects.linkerd import lint_codes as codes
from eastgate.ir.paths import comparable_path, is_refused
from eastgate.reports.lint import Finding, lint
from tests.worlds import linkerd_generate
from tests.worlds.linkerd_oracle import Call, Manifest, Mesh, account_name
from tests.worlds.test_generated_clusters import authority_of

_ELSEWHERE = "8.8.8.8"
_GROUP, _GATEWAY = linkerd_generate.GROUP, linkerd_generate.GATEWAY
_PORT = 80
_SERVER = {
    "apiVersion": f"{_GROUP}/v1beta3",
    "kind": "Server",
    "metadata": {"name": "s0", "namespace": "n", "labels": {}},
    "spec": {"port": _PORT, "podSelector": {}, "proxyProtocol": "HTTP/1"},
}
_ROUTES = ((_GROUP, "r0"), (_GATEWAY, "r0"), (_GROUP, "r1"))


def _policy(number: int, route: tuple[str, str], required: list[Manifest]) -> Manifest:
    target = {"group": route[0], "kind": "HTTPRoute", "name": route[1]}
    return {
        "apiVersion": f"{_GROUP}/v1alpha1",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": f"p{number}", "namespace": "n"},
        "spec": {"targetRef": target, "requiredAuthenticationRefs": required},
    }


_spec = linkerd_generate.route_spec(linkerd_generate.http_match)
_routes = st.tuples(
    *(
        linkerd_generate.resource(f"{group}/v1beta3" if group == _GROUP else f"{group}/v1", "HTTPRoute", name, _spec)
        for group, name in _ROUTES
    )
)
_authentications = st.sampled_from([None, [], [{"kind": "ServiceAccount", "name": "x"}]])
_calls = linkerd_generate.calls.map(lambda calls: [replace(call, port=_PORT) for call in calls])


@settings(max_examples=80, deadline=None)
@given(linkerd_generate.pods, _routes, st.tuples(*(_authentications for _ in _ROUTES)), _calls)
def test_a_route_is_gone_round_where_lint_says_so_and_nowhere_else(
    pods: list[Manifest], routes: tuple[Manifest, ...], required: tuple[list[Manifest] | None, ...], calls: list[Call]
) -> None:
    asked = zip(_ROUTES, required, strict=True)
    policies = [_policy(number, route, one) for number, (route, one) in enumerate(asked) if one is not None]
    manifests = [*pods, _SERVER, *routes, *policies]
    found = lint(authority_of(manifests, Settings()))
    findings = [one for one in found if one.code is codes.ROUTE_RESPELT]
    native, ours = (Mesh(manifests, "all-unauthenticated", native=plane) for plane in (True, False))
    for finding in findings:
        pod, call = _example(finding, pods)
        assert (native.status(pod, call), ours.status(pod, _compared(call))) == (200, 403), finding
    for pod in pods:
        round_it = [one for one in calls if _goes_round(native, ours, pod, one)]
        assert findings or not round_it, (pod["metadata"]["name"], round_it[0])


def _goes_round(native: Mesh, ours: Mesh, pod: Manifest, call: Call) -> bool:
    if call.method is None or is_refused(call.path):
        return False
    return (native.status(pod, call), ours.status(pod, _compared(call))) == (200, 403)


def _compared(call: Call) -> Call:
    return replace(call, path=comparable_path(call.path))


def _example(finding: Finding, pods: list[Manifest]) -> tuple[Manifest, Call]:
    words = shlex.split(finding.example or "")[2:]
    said = dict(zip(words[::2], words[1::2], strict=True))
    headers = tuple((name, value) for name, _, value in [said["--header"].partition("=")]) if "--header" in said else ()
    source = said["--from"]
    name = None if source == "anonymous" else source
    if source.startswith("sa:"):
        name = account_name(*source.removeprefix("sa:").split("/"))
    pod = next(one for one in pods if said["--to"] == f"pod:n/{one['metadata']['name']}")
    address, port = said.get("--source-ip", _ELSEWHERE), int(said["--port"])
    return pod, Call(name, address, port, said["--method"], said["--path"], said.get("--host", "other"), headers)
