"""Valid identities, networks, ports and durations (invalid ones are in tests/broken)."""

from __future__ import annotations

import pytest

from eastgate.dialects.linkerd.values import milliseconds, port_problem
from tests.dialects.linkerd.reading import judge, manifest


def codes(kind: str, spec: str) -> list[str]:
    return [one.code.id for one in judge(manifest(kind, spec))[1]]


@pytest.mark.parametrize(
    "identity",
    [
        "*",
        "*.west.example.com",
        "web",
        "web.shop.serviceaccount.identity.linkerd.cluster.local",
        "1.2.3.4",
        "a-b.c--d",
        "spiffe://td",
        "spiffe://td/a",
        "spiffe://t_d.0-x/ns/A.b_c-d/...",
    ],
)
def test_an_identity_is_a_dns_name_or_a_spiffe_id(identity: str) -> None:
    assert codes("MeshTLSAuthentication", f"identities: ['{identity}']") == []
    in_a_server_authorization = f"{{server: {{name: web}}, client: {{meshTLS: {{identities: ['{identity}']}}}}}}"
    wanted = ["EG4007"] if identity.startswith("spiffe://") else []
    assert codes("ServerAuthorization", in_a_server_authorization) == wanted


@pytest.mark.parametrize(
    "cidr", ["10.0.0.0/8", "10.1.2.3/8", "10.0.0.1", "0.0.0.0/0", "::/0", "fd00::1", "fd00::1/8", "::ffff:10.0.0.0/104"]
)
def test_a_network_is_a_cidr_or_an_address_and_bits_behind_the_prefix_do_not_matter(cidr: str) -> None:
    assert codes("NetworkAuthentication", f"networks: [{{cidr: '{cidr}'}}]") == []


@pytest.mark.parametrize(
    ("cidr", "exception", "found"),
    [
        ("10.0.0.0/8", "10.1.0.0/16", []),
        ("10.0.0.0/8", "10.0.0.1", []),
        ("10.1.2.3/8", "10.9.9.9/9", []),  # as 10.0.0.0/8 and 10.0.0.0/9
        ("10.0.0.0/8", "10.9.9.9/8", ["EG4013"]),
        ("10.0.0.1", "10.0.0.1", ["EG4013"]),
        ("10.0.0.0/8", "0.0.0.0/0", ["EG4013"]),
        ("10.0.0.0/8", "::/0", ["EG4014"]),
        ("::/0", "10.0.0.0/8", ["EG4014"]),
        ("10.0.0.0/9", "10.128.0.0/9", ["EG4014"]),
    ],
)
def test_an_exception_is_some_of_its_network(cidr: str, exception: str, found: list[str]) -> None:
    assert codes("NetworkAuthentication", f"networks: [{{cidr: '{cidr}', except: ['{exception}']}}]") == found


@pytest.mark.parametrize(
    ("name", "sound"),
    [
        ("http", True),
        ("h2", True),
        ("8080-tcp", True),
        ("a" * 15, True),
        ("a" * 16, False),
        ("8080", False),
        ("", False),
        ("-a", False),
        ("a-", False),
        ("a--b", False),
        ("A", False),
        ("a_b", False),
    ],
)
def test_the_name_of_a_port_is_one_that_kubernetes_lets_a_port_have(name: str, sound: bool) -> None:
    assert (port_problem(name) is None) is sound


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0.0),
        ("+0", 0.0),
        ("5s", 5000.0),
        ("+5s", 5000.0),
        ("5.6s", 5600.0),
        ("5.s", 5000.0),
        (".5s", 500.0),
        ("13ms", 13.0),
        ("10us", 0.01),
        ("10µs", 0.01),
        ("10ns", 0.00001),
        ("16h", 57_600_000.0),
        ("3h30m", 12_600_000.0),
        ("10.5s4m", 250_500.0),
        ("", None),
        ("5", None),
        ("s", None),
        (".s", None),
        ("-5s", None),
        ("5d", None),
        ("5 s", None),
        ("5s ", None),
        ("٥s", None),
    ],
)
def test_a_duration_is_one_of_go(text: str, expected: float | None) -> None:
    assert milliseconds(text) == (None if expected is None else pytest.approx(expected))
