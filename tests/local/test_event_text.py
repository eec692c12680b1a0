"""Events as text."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from eastgate import load
from eastgate.authority.changes import ChangedNames
from eastgate.control.access_log import Observation, Repeats, read_record
from eastgate.control.capturing import PortMode
from eastgate.control.deciders import Deciders, describe_handshake
from eastgate.control.events import Decided, Enforced, Noted, NotEnforced, PartlyEnforced, Ready
from eastgate.local.event_text import EventText
from tests.local.running import SHOP

AUTHORITY = load(SHOP)
LOG = Path(__file__).with_name("shop.log")


def seen_in_log() -> list[Observation]:
    found = (read_record(json.loads(line)) for line in LOG.read_text().splitlines())
    return [one for one in found if one is not None]


@pytest.fixture
def teller() -> EventText:
    return EventText(lambda: AUTHORITY)


@pytest.mark.parametrize(
    ("who", "text"),
    [
        ("open", "nothing is in the way"),
        ("none-of-1", "no rule of 1 policy allows it"),
        ("none-of-0", "no rule allows it"),
        ("cannot-be-enforced", "closed: a policy here cannot be enforced"),
        ("proxy/http1.codec_error", "the proxy itself: http1.codec_error"),
        ("AuthorizationPolicy.gateway.networking.x-k8s.io/shop/gone#3", "AuthorizationPolicy/shop/gone rule 3"),
    ],
)
def test_who_decided(who: str, text: str) -> None:
    assert Deciders().find(["shop/cart"], who, AUTHORITY).text == text


@pytest.mark.parametrize(
    ("gateways", "line"),
    [
        (0, "ready: 2 workloads, 1 policy, in 30 ms"),
        (1, "ready: 2 workloads, 1 gateway, 1 policy, in 30 ms"),
        (2, "ready: 2 workloads, 2 gateways, 1 policy, in 30 ms"),
    ],
)
def test_gateways_are_counted_where_there_are_any(teller: EventText, gateways: int, line: str) -> None:
    assert teller.line(Ready(2, 1, 30.0, gateways)) == line


def test_a_rule_is_named_with_its_line() -> None:
    name = "AuthorizationPolicy.gateway.networking.x-k8s.io/shop/cart-from-web#0"
    decider = Deciders().find(["shop/cart"], name, AUTHORITY)
    assert decider.position == f"{SHOP}/policies.yaml:11"
    assert (decider.policy, decider.rule) == ("AuthorizationPolicy/shop/cart-from-web", 0)
    assert Deciders().find([], name, AUTHORITY).position == ""


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (
            "TLS_error:|268435581:…:CERTIFICATE_VERIFY_FAILED:verify_cert_failed:_no_trust_bundle_store",
            "does not trust",
        ),
        ("…CERTIFICATE_VERIFY_FAILED:TLS_error_end", "could not be verified"),
        ("…PEER_DID_NOT_RETURN_A_CERTIFICATE…", "sent no certificate"),
        ("…TLSV1_ALERT_UNKNOWN_CA…", "does not trust the CA of the mesh"),
        ("something new", "it failed (something new)"),
        (None, "it failed"),
    ],
)
def test_handshakes_in_words(reason: str | None, words: str) -> None:
    assert words in describe_handshake(reason)


def test_each_call_is_reported_once() -> None:
    repeats = Repeats()
    unrepeated = [one for one in seen_in_log() if not repeats.is_repeat(one)]
    assert len(unrepeated) == 9
    assert sum(one.level == "request" for one in unrepeated) == 3


def test_what_is_not_enforced_is_loud(teller: EventText) -> None:
    event = NotEnforced("shop/cart", 80, ("AuthorizationPolicy/shop/x",), "shop/cart port 80 is closed: \x1b[2J no")
    assert teller.line(event) == r"NOT ENFORCED: shop/cart port 80 is closed: \x1b[2J no"
    assert teller.to_json(event)["event"] == "notEnforced"


def test_what_is_enforced_in_part_is_never_called_enforced(teller: EventText) -> None:
    changes = ChangedNames(changed=("AuthorizationPolicy/shop/x",))
    event = PartlyEnforced(1.0, ("shop/cart",), changes, ("shop/cart port 80",), ())
    assert teller.line(event).startswith("PARTLY enforced in 1 ms: changed AuthorizationPolicy/shop/x; ")
    assert teller.line(event).endswith("; closed: shop/cart port 80")
    assert teller.to_json(event)["event"] == "partlyEnforced"


def test_a_path_cannot_speak_to_the_terminal(teller: EventText) -> None:
    seen = next(one for one in seen_in_log() if one.level == "request")
    assert "\x1b" not in teller.line(Decided(replace(seen, path="/\x1b]0;mine\x07")))


def test_times_and_numbers(teller: EventText) -> None:
    assert teller.line(Enforced(22.4, ())) == (
        "enforced in 22 ms: no policy changed its meaning; no proxy needed an update"
    )
    assert teller.line(Enforced(22.4, ("a/b", "a/c", "a/d", "a/e"))).endswith("; updated 4 proxies")
    assert teller.line(Noted("hello")) == "hello"


def test_added_changed_and_removed_policies_are_listed_separately(teller: EventText) -> None:
    many = tuple(f"AuthorizationPolicy/default/p{number}" for number in range(7))
    both: dict[str, tuple[PortMode | None, PortMode]] = {
        "default/ratings": (PortMode.ALLOW_LIST, PortMode.OPEN),
        "default/details": (PortMode.OPEN_EXCEPT, PortMode.OPEN),
        "default/reviews": (PortMode.OPEN, PortMode.ALLOW_LIST),
    }
    changes = ChangedNames(("AuthorizationPolicy/default/new", "Deployment/default/x"), many[:1], many)
    event = Enforced(5.0, ("default/ratings",), changes, both)
    assert teller.line(event) == (
        "enforced in 5 ms: added AuthorizationPolicy/default/new, Deployment/default/x; "
        "changed AuthorizationPolicy/default/p0; removed 7 policies; "
        "now open to all callers: default/details, default/ratings; "
        "now open only to callers that a policy allows: default/reviews; updated default/ratings"
    )
    data = teller.to_json(event)
    assert data["removed"] == many
    assert data["modes"] == {key: {"before": before, "now": now} for key, (before, now) in both.items()}
    objects = Enforced(5.0, (), ChangedNames(added=("Deployment/a/b", "Service/a/b", "AuthorizationPolicy/a/b")))
    assert "added 1 policy and 2 objects;" in teller.line(objects)
