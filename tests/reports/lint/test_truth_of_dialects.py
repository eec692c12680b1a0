"""Findings of lint about Linkerd's resources and AccessPolicies are true."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from eastgate import Settings
from eastgate.dialects.linkerd import lint_codes as codes
from eastgate.ir.attributes import METHOD
from eastgate.reports.lint import lint
from tests.reports.lint.test_truth import NEVER_MATCH, NOT_NEEDED, rule_of
from tests.worlds import access_generate, linkerd_generate
from tests.worlds.access_oracle import Manifest
from tests.worlds.linkerd_oracle import ALL_POLICIES, Call
from tests.worlds.test_generated_access import every_call, question
from tests.worlds.test_generated_clusters import authority_of
from tests.worlds.test_generated_linkerd import decided


def _is_on_workload(one: Manifest) -> bool:
    """Return whether it replaces the default on a port without a Server, even if it authorizes no client."""
    return one["spec"].get("targetRef", {}).get("kind") in ("ServiceAccount", "Pod")


@settings(max_examples=120, deadline=None)
@given(
    linkerd_generate.pods,
    linkerd_generate.namespace,
    linkerd_generate.resources,
    st.sampled_from(ALL_POLICIES),
    linkerd_generate.calls,
)
def test_without_an_authorization_that_is_not_needed_every_decision_of_linkerd_stays(
    pods: list[Manifest], namespace: Manifest, resources: list[Manifest], default: str, calls: list[Call]
) -> None:
    chosen = Settings.from_mapping({"linkerdDefaultPolicy": default})
    authority = authority_of([namespace, *pods, *resources], chosen)
    wanted = (*NOT_NEEDED, codes.ACCESS_POLICY_WINS)
    closing = {f"{one['kind']}/n/{one['metadata']['name']}" for one in resources if _is_on_workload(one)}
    spare = sorted(
        {
            finding.subjects[0]
            for finding in lint(authority)
            if finding.code in wanted and not (finding.code in NEVER_MATCH and finding.subjects[0] in closing)
        }
    )
    for policy in spare[:2]:
        kind, _, name = policy.split("/")
        fewer = [one for one in resources if (one["kind"], one["metadata"]["name"]) != (kind, name)]
        without = authority_of([namespace, *pods, *fewer], chosen)
        for pod in pods:
            for call in calls:
                assert decided(authority, pod, call)[0] == decided(without, pod, call)[0], policy


def _on_backends(name: str, backends: list[str], rules: int, **more: str) -> Manifest:
    group = access_generate.SEED.partition("/")[0]
    source = {"type": "SPIFFE", "spiffe": access_generate.IDENTITIES[0]}
    spec = {
        "targetRefs": [{"group": group, "kind": "XBackend", "name": backend} for backend in backends],
        "rules": [{"name": f"r{number}", "source": source} for number in range(rules)],
        **more,
    }
    metadata = {"name": name, "namespace": "n"}
    return {"apiVersion": access_generate.SEED, "kind": "XAccessPolicy", "metadata": metadata, "spec": spec}


# denied before on one backend, written twice on the other
_IDLE_IN_TWO_WAYS = [_on_backends("p1", ["b1", "b2"], 2), _on_backends("p2", ["b1"], 1, action="Deny")]


@settings(max_examples=80, deadline=None)
@given(access_generate.policies, st.sampled_from(["deny", "proceed"]))
@example(_IDLE_IN_TWO_WAYS, "deny")
def test_no_request_is_decided_by_a_rule_of_an_access_policy_that_can_never_match(
    policies: list[Manifest], unlisted: str
) -> None:
    chosen = Settings.from_mapping({"trustDomain": "td", "unlistedCaller": unlisted})
    authority = authority_of([*access_generate.FIXED, *policies], chosen)
    never = {rule_of(finding) for finding in lint(authority) if finding.code in NEVER_MATCH}
    for backend in access_generate.BACKENDS if never else ():
        for call in every_call(backend):
            decision = authority.decide(question(call, f"backend:n/{backend}", {}))
            assert METHOD in decision.arrival.request.values
            assert (decision.policy, decision.rule) not in never
