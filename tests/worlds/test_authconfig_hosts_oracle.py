"""The oracle of AuthConfig hosts gives the answers of Authorino's own tests and documentation."""

from __future__ import annotations

import pytest

from tests.worlds.authconfig_hosts_oracle import Index, Links, Manifest


def config(name: str, day: int, *hosts: str) -> Manifest:
    created = f"2026-01-0{day}T00:00:00Z"
    return {"metadata": {"namespace": "n", "name": name, "creationTimestamp": created}, "spec": {"hosts": list(hosts)}}


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("foo.nip.io", "n/1"),
        ("talker-api.nip.io", "n/2"),
        ("dogs.pets.com", "n/2"),
        ("api.acme.com", "n/3"),
        ("www.acme.com", "n/4"),
        ("acme.com", "n/4"),
        ("x.api.acme.com", "n/4"),
        ("api.acme.com:8080", "n/3"),
        ("foo.org", None),
        ("com", None),
    ],
)
def test_documented_lookups(host: str, expected: str | None) -> None:
    links = Links(
        [
            config("1", 3, "*.io"),
            config("2", 1, "talker-api.nip.io", "*.pets.com"),
            config("3", 1, "api.acme.com"),
            config("4", 2, "*.acme.com"),
        ]
    )
    assert links.serving(host) == expected


def test_a_wildcard_takes_the_matching_hosts_of_younger_configs() -> None:
    links = Links([config("younger", 2, "api.acme.com", "acme.org"), config("older", 1, "*.acme.com")])
    assert links.linked == {"n/older": ["*.acme.com"], "n/younger": ["acme.org"]}
    assert links.loose["n/younger"] == ["api.acme.com"]


def test_a_wildcard_may_be_superseded() -> None:
    configs = [config("younger", 2, "api.acme.com", "*.acme.com"), config("older", 1, "*.acme.com")]
    links = Links(configs, superseding=True)
    assert links.linked == {"n/older": ["*.acme.com"], "n/younger": ["api.acme.com"]}
    assert [links.serving(host) for host in ("api.acme.com", "www.acme.com")] == ["n/younger", "n/older"]


def test_everything_serves_names_with_ports_first() -> None:
    links = Links([config("api", 1, "api.acme.com"), config("all", 2, "*")])
    assert [links.serving(host) for host in ("api.acme.com", "api.acme.com:80")] == ["n/api", "n/all"]


def test_index_of_upstream_tests() -> None:
    index = Index()
    for host in ("talker-api.nip.io", "*.pets.com"):
        index.link(host, "2")
    index.link("*.io", "1")
    index.link("api.acme.com", "3")
    index.link("*.acme.com", "4")
    assert [index.find(host) for host in ("*.io", "*.com", "nip.io", "cats.pets.com", "pets.com")] == [
        "1",
        None,
        "1",
        "2",
        "2",
    ]
