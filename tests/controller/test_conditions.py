"""Wanted conditions, merged into existing ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from eastgate.controller.conditions import StatusCondition, find_condition, merge_conditions, timestamp

_THEN, _NOW = "2026-01-01T00:00:00Z", "2026-02-02T00:00:00Z"


def _entry(type_: str, status: str = "True", reason: str = "Accepted", **more: Any) -> dict[str, Any]:
    entry = {"type": type_, "status": status, "reason": reason, "message": "", "observedGeneration": 1}
    return entry | {"lastTransitionTime": _THEN} | more


def test_a_new_condition_begins_now() -> None:
    merged = merge_conditions(None, [StatusCondition.true("Accepted", "Accepted")], 1, _NOW)
    assert merged == [_entry("Accepted", lastTransitionTime=_NOW)]


def test_an_existing_condition_does_not_change() -> None:
    existing = [_entry("Other", observedGeneration=7), _entry("Accepted")]
    assert merge_conditions(existing, [StatusCondition.true("Accepted", "Accepted")], 1, _NOW) == existing


@pytest.mark.parametrize(
    ("wanted", "time"),
    [
        (StatusCondition.true("Accepted", "Other"), _THEN),
        (StatusCondition.true("Accepted", "Accepted", "words"), _THEN),
        (StatusCondition.false("Accepted", "Invalid"), _NOW),
        (StatusCondition.unknown("Accepted", "Pending"), _NOW),
    ],
)
def test_a_transition_is_a_change_of_status_alone(wanted: StatusCondition, time: str) -> None:
    (merged,) = merge_conditions([_entry("Accepted")], [wanted], 2, _NOW)
    assert merged["lastTransitionTime"] == time
    assert merged["observedGeneration"] == 2
    assert (merged["status"], merged["reason"]) == (wanted.status.value, wanted.reason)


def test_conditions_of_others_stay_and_our_own_go_when_they_are_not_wanted() -> None:
    existing = [_entry("Programmed"), _entry("example.com/Seen", custom="kept"), _entry("Accepted")]
    merged = merge_conditions(
        existing, [StatusCondition.true("Accepted", "Accepted")], 1, _NOW, ours=("Accepted", "Programmed")
    )
    assert merged == existing[1:]


def test_the_existing_conditions_are_not_changed_in_place() -> None:
    existing = [_entry("Accepted")]
    merge_conditions(existing, [StatusCondition.false("Accepted", "Invalid")], 2, _NOW)
    assert existing == [_entry("Accepted")]


def test_a_message_is_cut_where_the_api_server_would_refuse_it() -> None:
    (merged,) = merge_conditions([], [StatusCondition.true("Accepted", "Accepted", "x" * 40_000)], 1, _NOW)
    assert len(merged["message"]) == 32768


def test_a_condition_of_a_generation_that_does_not_exist_is_replaced() -> None:
    (merged,) = merge_conditions(
        [_entry("Accepted", observedGeneration=5)], [StatusCondition.true("Accepted", "Accepted")], 4, _NOW
    )
    assert merged == _entry("Accepted", observedGeneration=4)


def test_a_condition_is_found_by_its_type() -> None:
    assert find_condition([_entry("A"), _entry("B")], "B") == _entry("B")
    assert find_condition(None, "B") is None


def test_a_timestamp_is_in_utc_and_has_whole_seconds() -> None:
    moment = datetime(2026, 1, 1, 2, 0, 0, 999, tzinfo=timezone(timedelta(hours=2)))
    assert timestamp(moment) == "2026-01-01T00:00:00Z" == timestamp(datetime(2026, 1, 1, tzinfo=UTC))
