"""Generated requests and bytes without unknown attributes: every attribute has a value, or is known to be absent."""

from __future__ import annotations

from random import Random

from tests.istio.drawn_policies import ADDRESSES, ISSUERS
from tests.istio.tables import Manifest

_LONG = ("spiffe://cluster.local/ns/a/sa/x/y", "spiffe://cluster.local/ns/a/x/sa/x")
_CALLERS = ("sa:a/x", "sa:a/x", "sa:a/y", "sa:ab/x", "sa:b/x", "sa:app/web", "spiffe://td2/ns/a/sa/x")
_DESTINATIONS = (
    *(("pod:app/web", 8080), ("pod:app/web", 8080), ("pod:app/web", 7000), ("service:app/web", 80)),
    *(("pod:app/db", 8080), ("pod:app/db", 7000)),
)
_OF_BYTES = (("pod:app/web", 9090), ("service:app/web", 90))
"""Ports that a Service declares as TCP. There a sidecar treats HTTP as bytes; a question about HTTP means HTTP."""
_PATHS = (
    *("/", "/a", "/a/", "/a/b", "/a/b/c", "/a/x/c", "/b", "/x/b", "/A", "/a?x=1", "/a;x", "/a.txt", "/*/b", "/a*b"),
    *("/a/../b", "/a//b", "/%61", "/a%2fb", "/a%2Fb", "/a/./b", "/a\\b", "/a%5cb", "/a"),
)
_SIX = ("2001:db8::1", "2001:db9::1")
_METHODS = ("GET", "GET", "POST", "PUT", "get", "DELETE")
_HOSTS = ("web.example", "WEB.example", "db.example", "web.example:8080", "example")
_SNI = ("web.example", "db.example", "web.other")


class RequestDraw:
    """Draws from a seeded generator. Plaintext, IPv6 and longer identities are only drawn if they are allowed."""

    def __init__(self, random: Random, *, plaintext: bool, ipv6: bool, long_identities: bool) -> None:
        self._random, self._has_plaintext = random, plaintext
        self._addresses = (*ADDRESSES, *ADDRESSES, *ADDRESSES, *(_SIX if ipv6 else ()))
        self._callers = (*_CALLERS, *_CALLERS, *(_LONG if long_identities else ()))

    def cases(self, count: int) -> list[Manifest]:
        """Draw questions without expectations."""
        return [{"name": f"request {number}", **self._case()} for number in range(count)]

    def _case(self) -> Manifest:
        is_http = self._random.random() < 0.75
        to, port = self._random.choice(_DESTINATIONS if is_http else (*_DESTINATIONS, *_OF_BYTES))
        source = self._random.choice(self._addresses)
        case: Manifest = {"to": to, "port": port, "sourceIP": source, **self._caller()}
        if not is_http:
            return {**case, "forwardedFor": source}  # bytes have no other address
        case["http"] = {
            "method": self._random.choice(_METHODS),
            "path": self._random.choice(_PATHS),
            "host": self._random.choice(_HOSTS),
            "headers": self._random.choice(({}, {}, {"x-key": "v"}, {"x-key": "vw"}, {"x-key": ["v", "w"]})),
        }
        case["forwardedFor"] = self._random.choice(ADDRESSES)
        if self._random.random() < 0.4:
            case["claims"] = self._claims()
        return case

    def _caller(self) -> Manifest:
        kind = self._random.random() if self._has_plaintext else 1.0
        if kind < 0.08:
            return {"from": "anonymous"}
        if kind < 0.16:
            return {"from": self._random.choice(self._callers), "plaintext": True}
        return {"from": self._random.choice(self._callers), "sni": self._random.choice(_SNI)}

    def _claims(self) -> Manifest:
        claims: Manifest = {
            "iss": self._random.choice((*ISSUERS, ISSUERS[0], "https://unknown.example")),
            "sub": self._random.choice(("alice", "alice", "bob")),
        }
        optional = {
            "aud": ("shop", ["shop", "more"], "other"),
            "azp": ("app.example", "other"),
            "groups": (["admins", "users"], "admins", ["others"], 7),
            "realm": ({"role": "reader"}, {"role": ["writer"]}),
            "scope": ("read write", "read", "readwrite"),
        }
        return claims | {
            name: self._random.choice(values) for name, values in optional.items() if self._random.random() < 0.4
        }
