"""Keys are checked once after any number of marks, and not too often. The tests set the time."""

from __future__ import annotations

from eastgate.controller.status.schedule import Pace, Schedule, TokenBucket

IMMEDIATE = Pace(delay=0)


def schedule(pace: Pace = IMMEDIATE) -> Schedule[str]:
    return Schedule(pace, jitter=lambda: 1.0)


def taken(keys: Schedule[str], now: float) -> list[str]:
    found = []
    while (key := keys.take(now)) is not None:
        found.append(key)
    return found


def test_marks_are_coalesced_and_taken_in_their_order() -> None:
    keys = schedule()
    keys.mark(["a", "b"], 0)
    keys.mark(["b", "c"], 1)
    assert len(keys) == 3
    assert taken(keys, 1) == ["a", "b", "c"]
    assert taken(keys, 1) == []
    assert keys.wait(1) is None


def test_a_marked_key_is_due_after_a_delay() -> None:
    keys = schedule(Pace(delay=2))
    keys.mark(["a"], 0)
    keys.mark(["a"], 1)
    assert taken(keys, 1) == []
    assert taken(keys, 2) == ["a"]


def test_a_key_that_was_written_is_left_alone_for_a_while() -> None:
    keys = schedule(Pace(delay=0, between=5))
    keys.mark(["a"], 0)
    assert taken(keys, 0) == ["a"]
    keys.spend("a", 0)
    keys.mark(["a"], 1)
    assert taken(keys, 1) == []
    assert keys.wait(1) == 4
    assert taken(keys, 5) == ["a"]


def test_a_key_that_needed_no_write_may_come_again_at_once() -> None:
    keys = schedule(Pace(delay=0, between=5))
    keys.mark(["a"], 0)
    assert taken(keys, 0) == ["a"]
    keys.mark(["a"], 0)
    assert taken(keys, 0) == ["a"]


def test_a_key_that_takes_long_to_look_at_is_left_alone_for_longer() -> None:
    keys = schedule()
    keys.rest("a", 0, 10)
    keys.rest("a", 0, 5)
    keys.mark(["a", "b"], 0)
    assert taken(keys, 0) == ["b"]
    assert keys.wait(0) == 10


def test_failures_wait_longer_each_time_and_marks_do_not_hurry_them() -> None:
    keys = schedule(Pace(delay=0, first_retry=1, longest_retry=5))
    waits = []
    now = 0.0
    for _ in range(5):
        keys.fail("a", now)
        keys.mark(["a"], now)
        wait = keys.wait(now)
        assert wait is not None
        waits.append(wait)
        now += wait
        assert taken(keys, now) == ["a"]
    assert waits == [1, 2, 4, 5, 5]
    keys.succeed("a")
    keys.fail("a", now)
    assert keys.wait(now) == 1


def test_a_retry_waits_for_the_time_of_the_server() -> None:
    keys = schedule(Pace(delay=0, first_retry=1))
    keys.fail("a", 0, asked=30)
    assert keys.wait(0) == 30


def test_no_more_are_taken_than_may_be() -> None:
    keys = schedule(Pace(delay=0, between=0, burst=2, per_second=1))
    keys.mark("abc", 0)
    for _ in range(2):
        key = keys.take(0)
        assert key is not None
        keys.spend(key, 0)
    assert keys.take(0) is None
    assert keys.wait(0) == 1
    assert keys.take(1) == "c"


def test_a_forgotten_key_is_not_taken() -> None:
    keys = schedule()
    keys.mark("ab", 0)
    keys.forget("a")
    assert taken(keys, 0) == ["b"]
    keys.mark("a", 1)
    assert taken(keys, 1) == ["a"]


def test_a_bucket_fills_again() -> None:
    bucket = TokenBucket(2, 0.5)
    assert [bucket.take(0), bucket.take(0), bucket.take(0)] == [True, True, False]
    assert bucket.wait(0) == 2
    assert [bucket.take(2), bucket.take(2)] == [True, False]
    assert [bucket.take(100), bucket.take(100), bucket.take(100)] == [True, True, False]
