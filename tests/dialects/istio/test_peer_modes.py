"""The mTLS modes of ports, in upstream's own cases (TestComposePeerAuthentication, testdata/peer-authn-*)."""

from __future__ import annotations

import pytest

from eastgate.dialects.istio.peer_modes import peer_modes, ztunnel_denials, ztunnel_ties
from eastgate.ir.attributes import IDENTITY, PORT
from tests.dialects.istio.planes_building import ROOT, holds, peers

SIDECAR = [
    ("", "PERMISSIVE", {}),
    ("mesh STRICT", "STRICT", {}),
    ("mesh STRICT; namespace PERMISSIVE", "PERMISSIVE", {}),
    ("mesh-workload STRICT", "PERMISSIVE", {}),
    ("namespace UNSET; workload UNSET", "PERMISSIVE", {}),
    ("namespace PERMISSIVE; mesh DISABLE", "PERMISSIVE", {}),
    ("mesh DISABLE @2; mesh PERMISSIVE @1; mesh STRICT @1", "PERMISSIVE", {}),
    ("namespace DISABLE @2; namespace PERMISSIVE @1; namespace STRICT @1", "PERMISSIVE", {}),
    ("workload DISABLE @2; workload PERMISSIVE @1; workload STRICT @1", "PERMISSIVE", {}),
    ("mesh UNSET", "PERMISSIVE", {}),
    ("mesh STRICT; workload UNSET", "STRICT", {}),
    ("namespace STRICT; workload UNSET", "STRICT", {}),
    ("mesh STRICT; namespace UNSET; workload UNSET", "STRICT", {}),
    ("workload STRICT 80=DISABLE 81=UNSET 82=PERMISSIVE", "STRICT", {80: "DISABLE", 81: "STRICT", 82: "PERMISSIVE"}),
    ("mesh STRICT; workload UNSET 80=DISABLE 81=UNSET", "STRICT", {80: "DISABLE", 81: "STRICT"}),
    ("mesh STRICT @2; mesh PERMISSIVE", "PERMISSIVE", {}),  # a policy without a time is the oldest
]


@pytest.mark.parametrize(("policies", "others", "ports"), SIDECAR, ids=[case[0] or "none" for case in SIDECAR])
def test_each_level_overrides_the_wider_one(policies: str, others: str, ports: dict[int, str]) -> None:
    modes = peer_modes(peers(policies), ROOT)
    assert modes.others.mode == others
    assert {port: mode.mode for port, mode in modes.ports} == ports


def test_a_mode_names_the_policy_that_sets_it() -> None:
    modes = peer_modes(peers("mesh STRICT; workload UNSET 80=UNSET 81=STRICT"), ROOT)
    owners = [mode.policy.ref.name for mode in (modes.others, modes.at(80), modes.at(81)) if mode.policy is not None]
    assert owners == ["mesh-0", "mesh-0", "workload-1"]


CLOSED = {80, 81, 99}
ZTUNNEL: list[tuple[str, set[int]]] = [  # the ports of 80, 81 and 99 that refuse plaintext
    ("", set()),
    ("mesh STRICT", CLOSED),
    ("mesh STRICT; namespace PERMISSIVE", set()),
    ("mesh STRICT; namespace PERMISSIVE; workload STRICT", CLOSED),
    ("mesh STRICT; workload PERMISSIVE", set()),
    ("mesh STRICT; workload DISABLE", set()),
    ("mesh DISABLE", set()),
    ("mesh-workload STRICT", set()),
    ("mesh PERMISSIVE; namespace PERMISSIVE; workload UNSET 80=STRICT 81=STRICT", {80, 81}),
    ("mesh PERMISSIVE; namespace STRICT; workload PERMISSIVE", set()),
    ("mesh PERMISSIVE; namespace UNSET; workload UNSET 80=STRICT 81=PERMISSIVE", {80}),
    ("mesh STRICT; workload UNSET 80=PERMISSIVE 81=STRICT", {81, 99}),
    ("namespace STRICT; workload UNSET 80=PERMISSIVE 81=DISABLE", {99}),
    ("workload STRICT 80=STRICT 81=PERMISSIVE", {80, 99}),
    ("workload STRICT 80=DISABLE", {81, 99}),
    ("workload STRICT 80=STRICT", CLOSED),
    ("workload UNSET 80=STRICT", {80}),
    ("workload PERMISSIVE 80=STRICT 81=PERMISSIVE", {80}),
    ("workload DISABLE 80=STRICT", {80}),
    ("namespace STRICT; workload PERMISSIVE 80=STRICT", {80}),
    # Peculiarities: DISABLE alone is not an exception, and some translations have no effect.
    ("mesh STRICT; workload UNSET 80=DISABLE", CLOSED),
    ("mesh STRICT; namespace UNSET; workload UNSET 80=PERMISSIVE", set()),
    ("mesh STRICT; workload PERMISSIVE 80=STRICT", set()),
    # Of policies with one age, any may count. So a connection is denied if one of them denies it.
    ("mesh PERMISSIVE @1; mesh STRICT @1", CLOSED),
    ("mesh STRICT @1; mesh PERMISSIVE @1", CLOSED),
    ("mesh PERMISSIVE @1; mesh STRICT @2", set()),
    ("mesh PERMISSIVE; mesh STRICT @1", set()),
    ("namespace UNSET; namespace STRICT", CLOSED),
    ("mesh STRICT; namespace PERMISSIVE; namespace UNSET", CLOSED),
    ("workload PERMISSIVE 80=STRICT; workload PERMISSIVE 81=STRICT", {80, 81}),
    ("namespace STRICT; namespace PERMISSIVE; workload UNSET 80=PERMISSIVE", {81, 99}),
    ("mesh PERMISSIVE; mesh STRICT; namespace PERMISSIVE", set()),
]


TIES = [
    ("mesh PERMISSIVE @1; mesh STRICT @1", ["mesh-0 mesh-1"]),
    ("mesh STRICT @1; mesh STRICT @1", []),  # both have the same modes
    ("mesh PERMISSIVE @1; mesh STRICT @2", []),
    (
        "mesh PERMISSIVE; mesh STRICT; workload STRICT 80=STRICT; workload STRICT",
        ["mesh-0 mesh-1", "workload-2 workload-3"],
    ),
]


@pytest.mark.parametrize(("policies", "expected"), TIES, ids=[case[0] for case in TIES])
def test_policies_of_one_age_that_differ_are_tied(policies: str, expected: list[str]) -> None:
    ties = ztunnel_ties(peers(policies), ROOT)
    assert [" ".join(policy.ref.name for policy in tie) for tie in ties] == expected


@pytest.mark.parametrize(("policies", "closed"), ZTUNNEL, ids=[case[0] or "none" for case in ZTUNNEL])
def test_ztunnel_gets_policies_that_deny_plaintext(policies: str, closed: set[int]) -> None:
    denials = ztunnel_denials(peers(policies), ROOT)
    ports = {port for port in CLOSED if any(holds(denial.when, {IDENTITY: None, PORT: port}) for denial in denials)}
    assert ports == closed
    assert not any(holds(denial.when, {IDENTITY: "spiffe://a/ns/b/sa/c", PORT: 80}) for denial in denials)
