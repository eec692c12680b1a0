"""Writes of status: only necessary ones, without changes of other entries, and never beyond the limit."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from eastgate.controller.conditions import StatusCondition
from eastgate.controller.status import CONTROLLER_NAME, Assessment, StatusEntry, StoredPolicy, merge_status
from eastgate.controller.status.ancestors import AncestorRef
from eastgate.dialects.serving import Status
from eastgate.ir import PolicyRef
from tests.controller.status.clusters import GROUP, LATER, NOW

OTHER = "example.com/controller"
REF = PolicyRef("AuthorizationPolicy", "shop", "web", GROUP)


def entry(name: str = "web", message: str = "") -> StatusEntry:
    accepted = StatusCondition.true("Accepted", "Accepted", message)
    return StatusEntry(AncestorRef("", "Service", name, "shop"), (accepted,))


def assessment(*entries: StatusEntry, form: Status = Status.ANCESTORS, generation: int = 3) -> Assessment:
    return Assessment(REF, form, StoredPolicy(generation), entries)


def foreign(name: str = "web", controller: str = OTHER) -> dict[str, Any]:
    """Return an entry of another controller, with a condition type that Eastgate writes too."""
    condition = {"type": "Accepted", "status": "False", "reason": "Mine", "message": "", "lastTransitionTime": NOW}
    return {
        "ancestorRef": {"group": "", "kind": "Service", "name": name},
        "controllerName": controller,
        "conditions": [condition],
    }


def ancestors(of: Assessment, *existing: dict[str, Any], now: str = NOW) -> list[dict[str, Any]]:
    status = merge_status(of, {"ancestors": list(existing)} if existing else None, now).status
    assert status is not None
    entries: list[dict[str, Any]] = status["ancestors"]
    return entries


def test_the_first_entry() -> None:
    assert ancestors(assessment(entry(message="fine"))) == [
        {
            "ancestorRef": {"group": "", "kind": "Service", "namespace": "shop", "name": "web"},
            "controllerName": CONTROLLER_NAME,
            "conditions": [
                {
                    "type": "Accepted",
                    "status": "True",
                    "reason": "Accepted",
                    "message": "fine",
                    "observedGeneration": 3,
                    "lastTransitionTime": NOW,
                }
            ],
        }
    ]


def test_an_unchanged_status_is_not_written() -> None:
    first = ancestors(assessment(entry()))
    assert merge_status(assessment(entry()), {"ancestors": first}, LATER).status is None


def test_an_unchanged_entry_among_others_is_not_written_in_any_order() -> None:
    ours = ancestors(assessment(entry()))
    for existing in ([foreign(), *ours], [*ours, foreign()], [foreign("a"), *ours, foreign("b")]):
        assert merge_status(assessment(entry()), {"ancestors": existing}, LATER).status is None


def test_a_reference_that_leaves_defaults_out_is_the_same() -> None:
    (ours,) = ancestors(assessment(entry()))
    del ours["ancestorRef"]["namespace"]
    assert merge_status(assessment(entry()), {"ancestors": [ours]}, LATER).status is None


def test_a_new_generation_is_written_and_changes_no_time() -> None:
    (ours,) = ancestors(assessment(entry()))
    (changed,) = ancestors(assessment(entry(), generation=4), ours, now=LATER)
    (condition,) = changed["conditions"]
    assert (condition["observedGeneration"], condition["lastTransitionTime"]) == (4, NOW)


def test_entries_of_others_stay_and_stay_where_they_are() -> None:
    ours = ancestors(assessment(entry("old"), entry("web")))
    existing = [foreign("a"), ours[0], foreign("web"), ours[1], foreign("c", "another.io/one")]
    merged = ancestors(assessment(entry("web", "changed")), *existing)
    assert [each for each in merged if each["controllerName"] != CONTROLLER_NAME] == [
        existing[0],
        existing[2],
        existing[4],
    ]
    assert [each["ancestorRef"]["name"] for each in merged] == ["a", "web", "web", "c"]
    assert ancestors(assessment(entry()), foreign("a"))[0] == foreign("a")


def test_conditions_of_other_controllers_in_an_own_entry_stay() -> None:
    (ours,) = ancestors(assessment(entry()))
    theirs = {"type": "example.com/Seen", "status": "True", "reason": "Seen", "message": "", "lastTransitionTime": NOW}
    ours["conditions"].append(theirs)
    (changed,) = ancestors(assessment(entry(message="changed")), ours)
    assert theirs in changed["conditions"]


def test_unwanted_own_conditions_are_removed() -> None:
    both = StatusEntry(
        AncestorRef("", "Service", "web", "shop"),
        (StatusCondition.true("Accepted", "Accepted"), StatusCondition.true("Programmed", "Programmed")),
    )
    merged = ancestors(assessment(entry()), *ancestors(assessment(both)))
    assert [condition["type"] for condition in merged[0]["conditions"]] == ["Accepted"]


def test_a_status_about_a_generation_that_does_not_exist_is_written_over() -> None:
    forged = ancestors(assessment(entry(message="forged"), generation=5))
    assert ancestors(assessment(entry(), generation=4), *forged) == ancestors(assessment(entry(), generation=4))


def test_where_others_have_filled_the_list_nothing_is_added() -> None:
    full = [foreign(f"service-{number}") for number in range(16)]
    merged = merge_status(assessment(entry()), {"ancestors": full}, NOW)
    assert merged.status is None
    assert merged.is_full
    assert not merge_status(assessment(), {"ancestors": full}, NOW).is_full


def test_entries_that_do_not_fit_are_folded_into_the_last() -> None:
    entries = [entry(f"service-{number:02}") for number in range(20)]
    merged = ancestors(assessment(*entries), *(foreign(f"other-{number}") for number in range(6)))
    assert len(merged) == 16
    ours = merged[6:]
    assert [each["ancestorRef"]["name"] for each in ours] == [f"service-{number:02}" for number in range(10)]
    message = ours[-1]["conditions"][0]["message"]
    assert message == "; 10 more targets are not listed for lack of space; they are not worse"
    assert merge_status(assessment(*entries), {"ancestors": merged}, LATER).status is None


def test_own_entries_of_former_targets_are_removed() -> None:
    ours = ancestors(assessment(entry("a"), entry("b")))
    assert ancestors(assessment(), *ours) == []
    assert merge_status(assessment(), None, NOW).status is None


def test_conditions_alone_are_written_without_those_of_others() -> None:
    whole = StatusEntry(None, (StatusCondition.true("Accepted", "Accepted"),))
    theirs = {"type": "Theirs", "status": "True", "reason": "Seen", "message": "", "lastTransitionTime": NOW}
    policy = assessment(whole, form=Status.CONDITIONS)
    status = merge_status(policy, {"conditions": [theirs]}, NOW).status
    assert status is not None
    assert status["observedGeneration"] == 3
    assert [condition["type"] for condition in status["conditions"]] == ["Accepted"]
    stored = {**status, "conditions": [theirs, *status["conditions"]]}
    assert merge_status(policy, stored, LATER).status is None
    assert merge_status(policy, {**stored, "observedGeneration": 9}, LATER).status == status


def test_parents_of_routes_are_a_list_of_their_own() -> None:
    status = merge_status(assessment(entry(), form=Status.PARENTS), None, NOW).status
    assert status is not None
    (parent,) = status["parents"]
    assert parent["parentRef"]["name"] == "web"


NAMES = st.sampled_from([f"service-{number:02}" for number in range(20)])


@given(
    st.lists(st.tuples(NAMES, st.sampled_from([OTHER, "another.io/one", CONTROLLER_NAME])), max_size=16),
    st.lists(NAMES, unique=True, max_size=20),
    st.lists(NAMES, unique=True, max_size=20),
)
def test_other_entries_always_stay_and_nothing_is_written_twice(
    stored: list[tuple[str, str]], first: list[str], second: list[str]
) -> None:
    before = [foreign(name, controller) for name, controller in stored]
    theirs = [each for each in before if each["controllerName"] != CONTROLLER_NAME]
    for names in (first, second):
        wanted = assessment(*(entry(name) for name in names))
        merged = merge_status(wanted, {"ancestors": before}, NOW)
        after = merged.status["ancestors"] if merged.status is not None else before
        assert len(after) <= 16
        assert [each for each in after if each["controllerName"] != CONTROLLER_NAME] == theirs
        listed = [each["ancestorRef"]["name"] for each in after if each["controllerName"] == CONTROLLER_NAME]
        assert listed == names[: 16 - len(theirs)]
        assert merged.is_full == (len(theirs) == 16 and bool(names))
        assert merge_status(wanted, {"ancestors": after}, LATER).status is None
        before = after
