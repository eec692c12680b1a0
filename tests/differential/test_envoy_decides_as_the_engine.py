"""Real proxies decide as the engine does: on generated policies, for many requests over real mTLS."""

from __future__ import annotations

from collections.abc import Iterator
from os import getpid

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eastgate import Settings
from tests.attacks.paths import TARGETS
from tests.differential.asking import Ask, Caller, Http
from tests.differential.bench import Bench
from tests.differential.corpus import asks
from tests.differential.policies import chosen_settings, policy_sets
from tests.differential.running import Tally, compare, enforced
from tests.differential.world import SETTINGS, Manifest

_SETS = 30
_MIN_DECISIONS = 2_000


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with Bench(f"differential-{getpid()}") as bench:
        yield bench


def test_generated_policies(bench: Bench) -> None:
    tally = Tally()

    @settings(max_examples=_SETS, deadline=None, suppress_health_check=list(HealthCheck), report_multiple_bugs=False)
    @given(policy_sets(), chosen_settings(), st.integers(0, 2**32))
    def run(policies: list[Manifest], chosen: Settings, sample: int) -> None:
        authority = enforced(bench, policies, chosen)
        if authority is not None:
            for found in compare(bench, authority, policies, list(asks(sample, 6, 3)), tally):
                raise found

    run()
    assert tally.decisions >= _MIN_DECISIONS, tally
    assert tally.kinds["allowed"] > _MIN_DECISIONS / 10 < tally.kinds["403"] + tally.kinds["closed"], tally
    assert len(tally.late) <= tally.decisions / 200, tally.late


def _paths(action: str, *paths: str) -> Manifest:
    return {
        "apiVersion": "gateway.networking.x-k8s.io/v1alpha2",
        "kind": "AuthorizationPolicy",
        "metadata": {"name": action.lower(), "namespace": "a"},
        "spec": {
            "targetRefs": [{"kind": "Pod", "selector": {}}],
            "action": action,
            "enforcementLevel": "APPLICATION",
            "rules": [{"applicationAttributes": {"paths": list(paths)}}],
        },
    }


_ME = Caller("spiffe://td/ns/a/sa/x", "127.0.0.2")


@pytest.mark.parametrize("denied", ["/", "/a", "/a/*", "*/b", "/a/b", "*.png", "/%C3%A9"])
def test_no_spelling_of_a_path_gets_past_a_denial(bench: Bench, denied: str) -> None:
    policies = [_paths("DENY", denied), _paths("ALLOW", "*")]
    authority = enforced(bench, policies, SETTINGS)
    assert authority is not None
    requests = [Http(target=target) for target in TARGETS]
    tried = [Ask(_ME, "a/p0", 80, http) for http in requests]
    assert not list(compare(bench, authority, policies, tried, Tally()))


_HOSTS = ("h", "H.:80", "h:abc", "h:", "h:-1", "h:80:80", "[h", "h.:", "h..")
_ESCAPED = tuple(f"/a{character}b" for character in '"<>^`{|}')


def test_hosts_and_characters_that_no_request_should_have(bench: Bench) -> None:
    policies = _route_to_host({"path": {"type": "RegularExpression", "value": "/a(%[0-9A-F]{2}|[^%])b|/ok"}})
    authority = enforced(bench, policies, SETTINGS)
    assert authority is not None
    requests = [*(Http(target="/ok", host=host) for host in _HOSTS), *(Http(target=path) for path in _ESCAPED)]
    assert not list(compare(bench, authority, policies, [Ask(_ME, "a/p0", 80, http) for http in requests], Tally()))


def _route_to_host(match: Manifest) -> list[Manifest]:
    group = "policy.linkerd.io"
    server = {"podSelector": {}, "port": 80, "proxyProtocol": "HTTP/1", "accessPolicy": "all-unauthenticated"}
    parents = [{"group": group, "kind": "Server", "name": "s"}]
    route = {"parentRefs": parents, "hostnames": ["h"], "rules": [{"matches": [match]}]}
    return [
        {"apiVersion": f"{group}/v1beta3", "kind": kind, "metadata": {"name": name, "namespace": "a"}, "spec": spec}
        for kind, name, spec in (("Server", "s", server), ("HTTPRoute", "r", route))
    ]


def test_a_caller_of_an_untrusted_domain_fails_the_handshake(bench: Bench) -> None:
    enforced(bench, [], SETTINGS)
    stranger = Caller("spiffe://unheard-of/workload", "127.0.0.2")
    [answer] = bench.ask([Ask(stranger, "a/p0", 80, Http())])
    assert not answer.allowed
    assert answer.status == 0
