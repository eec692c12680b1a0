"""Tests that Envoy can make exactly as a policy means them, and others."""

from __future__ import annotations

import pytest

from eastgate.envoy.plan.combining import joint_of, obstacle
from eastgate.envoy.plan.vantage import AT_SIDECAR
from eastgate.ir import Computed, Is, OneOf, Prefix, Present, Suffix
from eastgate.ir.attributes import METHOD, PATH, SERVICE, Attribute, claim, header, query

UNSEEN, UNTESTABLE = "EG8002", "EG8003"


def _one_of(*texts: str) -> OneOf:
    return OneOf(frozenset(texts))


def _computed(attribute: Attribute, *, empty: bool, pattern: bool = True) -> Computed:
    return Computed("test", frozenset({attribute}), lambda _: empty, pattern=(attribute, "x") if pattern else None)


@pytest.mark.parametrize(
    ("atom", "code"),
    [
        (Is(METHOD, _one_of("GET")), None),
        (Is(SERVICE, Present()), UNSEEN),
        (Is(claim("sub"), Present()), UNSEEN),
        (Is(header("x-team"), _one_of("")), None),
        (Is(query("team"), _one_of("")), None),
        (Is(header("x-team"), _one_of("red"), joined=True), UNTESTABLE),
        (Is(header("te"), _one_of("red")), UNTESTABLE),  # Envoy's own
        (Is(query("te"), _one_of("red")), None),
        (Is(header("x-envoy-retry-on"), _one_of("red")), UNTESTABLE),
        (Is(header("accept"), _one_of("a", "b")), None),
        (Is(header("accept"), _one_of("a", "")), UNTESTABLE),  # of several values, Envoy drops empty ones
        (Is(header("cookie"), _one_of("")), UNTESTABLE),
        (Is(query("accept"), _one_of("")), None),
        (Is(header("accept"), Prefix("a")), None),
        (Is(header("accept"), Present()), None),
        (Is(header("x-team"), _one_of("a\x02b")), UNTESTABLE),  # cannot be noted for a request
        (Is(header("x-team"), Prefix("\x03")), UNTESTABLE),
        (Is(header("x-team"), Suffix("\x00")), UNTESTABLE),
        (_computed(PATH, empty=True), None),
        (_computed(PATH, empty=True, pattern=False), UNTESTABLE),
        (_computed(SERVICE, empty=False), UNSEEN),
        (_computed(header("x-team"), empty=True), None),
        (_computed(header("accept"), empty=False), None),
        (_computed(header("accept"), empty=True), UNTESTABLE),
        (_computed(header("te"), empty=False), UNTESTABLE),
    ],
)
def test_what_cannot_be_tested_exactly_is_an_obstacle(atom: Is | Computed, code: str | None) -> None:
    problem = obstacle(atom, AT_SIDECAR)
    assert (problem and problem[0].id) == code


@pytest.mark.parametrize(
    ("attribute", "joint"),
    [
        (header("accept"), ","),
        (header("cookie"), "; "),
        (header("x-team"), None),
        (query("accept"), None),
        (query("cookie"), None),
    ],
)
def test_values_of_some_headers_are_one_text_to_envoy(attribute: Attribute, joint: str | None) -> None:
    assert joint_of(attribute) == joint
