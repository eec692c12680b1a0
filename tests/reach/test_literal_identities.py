"""Linkerd takes a SPIFFE ID in a rule literally: it names a caller that is not the account, and reports include it."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from eastgate import Authority, Question, Settings
from eastgate.reach.differences import compare
from tests.reach.asking import first_allowed, reachability
from tests.worlds.test_generated_clusters import authority_of

Manifest = dict[str, Any]
_GROUP = "policy.linkerd.io"
_ANA, _BOB = (f"spiffe://cluster.local/ns/app/sa/{name}" for name in ("ana", "bob"))
_ANA_IN_LINKERD = "ana.app.serviceaccount.identity.linkerd.cluster.local"


def _object(kind: str, version: str, name: str, spec: Manifest) -> Manifest:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "app"}, "spec": spec}


def _world(identities: list[str], more: tuple[Manifest, ...] = ()) -> Authority:
    pod = _object("Pod", "v1", "web", {"containers": [{"name": "c", "image": "i"}]})
    pod["metadata"]["labels"] = {"app": "web"}
    selector = {"matchLabels": {"app": "web"}}
    refs = [{"group": _GROUP, "kind": "MeshTLSAuthentication", "name": "some"}]
    target = {"group": _GROUP, "kind": "Server", "name": "web"}
    authorization = {"targetRef": target, "requiredAuthenticationRefs": refs}
    manifests = [
        pod,
        _object("Server", f"{_GROUP}/v1beta3", "web", {"podSelector": selector, "port": 8080}),
        _object("AuthorizationPolicy", f"{_GROUP}/v1alpha1", "some", authorization),
        _object("MeshTLSAuthentication", f"{_GROUP}/v1alpha1", "some", {"identities": identities}),
        *more,
    ]
    return authority_of(manifests, Settings())


def _gep(source: Manifest) -> Manifest:
    targets = [{"kind": "Pod", "selector": {"matchLabels": {"app": "web"}}}]
    spec = {"targetRefs": targets, "action": "ALLOW", "rules": [{"authorizationSource": source}]}
    return _object("AuthorizationPolicy", "gateway.networking.x-k8s.io/v1alpha2", "network", spec)


_BESIDE: tuple[tuple[Manifest, ...], ...] = (
    (),
    (_gep({"identities": [_ANA]}),),
    (_gep({"serviceAccounts": ["app/*"]}),),
    (_gep({"identities": [_BOB]}),),
)
_CALLERS = (_ANA, _BOB, "sa:app/ana", "sa:app/bob", "sa:app/other", "anonymous")


@pytest.mark.parametrize("beside", range(len(_BESIDE)))
@pytest.mark.parametrize("identities", [[_ANA], [_ANA, _BOB], [_ANA, _ANA_IN_LINKERD]])
def test_reachability_and_check_agree_on_a_caller(identities: list[str], beside: int) -> None:
    authority = _world(identities, _BESIDE[beside])
    reach = reachability(authority)
    (destination,) = reach.destinations
    for source in _CALLERS:
        question = Question.of(source, "pod:app/web", port=8080, method="GET", path="/")
        if source == _BOB and _BOB not in identities:
            continue  # no rule names it: the cell of other SPIFFE IDs has it
        (request,) = authority.requests(question)
        assert first_allowed(reach, destination, request) is authority.decide(question).allowed, source


def test_a_comparison_reports_literal_identities() -> None:
    for old, new in itertools.permutations((_world([_ANA]), _world([_BOB])), 2):
        comparison = compare(old, new)
        assert comparison.proven
        sources = {str(each.confirmation.question.source) for each in comparison.differences if each.confirmation}
        assert sources == {_ANA, _BOB}
