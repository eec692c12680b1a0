"""AuthConfigs with colliding hosts, and hosts of requests."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.worlds.authconfig_hosts_oracle import Manifest

_PORTS = st.sampled_from(["", "", "", ":80", ":8080"])
_TIMES = st.integers(1, 3).map(lambda day: f"2026-01-0{day}T00:00:00Z")


_NAMES = st.lists(st.sampled_from(["a", "b", "A"]), min_size=1, max_size=3).map(lambda drawn: ".".join([*drawn, "io"]))
_EXACT = st.tuples(st.one_of(_NAMES, st.sampled_from(["io", "a"])), _PORTS).map("".join)
_WILDCARDS = st.one_of(st.just("*"), _EXACT.map(lambda name: f"*.{name}"))

asked_hosts = st.lists(_EXACT, min_size=1, max_size=6, unique=True)


@st.composite
def configs(draw: st.DrawFn) -> list[Manifest]:
    """Draw AuthConfigs with unique names that allow every caller."""
    names = draw(
        st.lists(
            st.tuples(st.sampled_from(["n", "m"]), st.sampled_from(["x", "y", "z"])),
            min_size=1,
            max_size=5,
            unique=True,
        )
    )
    return [
        {
            "apiVersion": "authorino.kuadrant.io/v1beta3",
            "kind": "AuthConfig",
            "metadata": {"namespace": namespace, "name": name, "creationTimestamp": draw(_TIMES)},
            "spec": {"hosts": draw(st.lists(st.one_of(_EXACT, _WILDCARDS), min_size=1, max_size=3))},
        }
        for namespace, name in names
    ]
