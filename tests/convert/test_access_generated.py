"""AccessPolicies converted between their forms allow the same if nothing is lost, and never more."""

from __future__ import annotations

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from eastgate import Settings
from tests.convert.conversions import ALL_ASSUMED, Manifest, converted
from tests.worlds import access_generate as generate
from tests.worlds.test_generated_access import every_call, question
from tests.worlds.test_generated_clusters import authority_of


@pytest.mark.parametrize("assumed", [False, True])
@pytest.mark.parametrize("to", ["accesspolicy-v0alpha0", "accesspolicy-v1alpha1"])
@settings(max_examples=100, deadline=None)
@given(policies=generate.policies, answers=generate.answers, unlisted=st.sampled_from(["deny", "proceed"]))
def test_between_the_forms(
    to: str, assumed: bool, policies: list[Manifest], answers: dict[str, str], unlisted: str
) -> None:
    chosen = Settings.from_mapping({"trustDomain": "td", "unlistedCaller": unlisted})
    outcome = converted([*generate.FIXED, *policies], to, chosen, ALL_ASSUMED if assumed else None)
    event("lossless" if not outcome.losses else "with losses")
    before = authority_of([*generate.FIXED, *policies], chosen)
    after = authority_of([*generate.FIXED, *outcome.written, *outcome.kept], chosen)
    for to_where, backend in (("backend:n/b1", "b1"), ("backend:n/b2", "b2"), ("gateway:n/g", "b1")):
        for call in every_call(backend):
            if assumed and call.mcp_method == "completion/complete":
                continue  # no server has these
            was, becomes = (one.decide(question(call, to_where, answers)).allowed for one in (before, after))
            assert not becomes or was, ("wider", to_where, call)
            assert outcome.losses or becomes == was, ("other", to_where, call)
