"""One request as it goes over the wire, and the same as a question to the engine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from eastgate import Question

__all__ = ["HTTP_1_0", "HTTP_1_1", "HTTP_2", "TRUST_DOMAIN", "Ask", "Caller", "Http"]

HTTP_1_0, HTTP_1_1, HTTP_2 = "HTTP/1.0", "HTTP/1.1", "HTTP/2"
TRUST_DOMAIN = "td"
_ACCOUNT = re.compile(rf"spiffe://{TRUST_DOMAIN}/ns/([^/]+)/sa/([^/]+)")


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, and from which address; `namespace/name` stands for that of a pod, which the bench finds out."""

    identity: str | None
    address: str

    @property
    def source(self) -> str:
        """An account of the cluster has a name in every dialect; others have only their SPIFFE ID."""
        if self.identity is None:
            return "anonymous"
        account = _ACCOUNT.fullmatch(self.identity)
        return f"sa:{account[1]}/{account[2]}" if account else self.identity


@dataclass(frozen=True, slots=True)
class Http:
    """A request, byte by byte. `headers` are all but the host, unless there is more than one."""

    method: str = "GET"
    target: str = "/"
    host: str = "h"
    headers: tuple[tuple[str, str], ...] = ()
    version: str = HTTP_1_1

    def to_bytes(self) -> bytes:
        """The request as HTTP/1 has it."""
        lines = [f"{self.method} {self.target} {self.version}", f"host: {self.host}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        return "".join(f"{line}\r\n" for line in lines).encode("utf-8", "surrogateescape") + b"\r\n"

    def fields(self) -> Iterator[tuple[bytes, bytes]]:
        """The request as HTTP/2 has it: names in small letters, pseudo-headers first."""
        pseudo = ((":method", self.method), (":scheme", "http"), (":path", self.target), (":authority", self.host))
        plain = ((name.lower(), value.strip(" \t")) for name, value in self.headers)
        for name, value in (*pseudo, *plain):
            yield name.encode("utf-8", "surrogateescape"), value.encode("utf-8", "surrogateescape")

    @property
    def hosts(self) -> str:
        """The host as the engine is told of it: several are one, with commas between, which is none. Empty ones are
        left out by Envoy, which passes on what it has compared.

        In HTTP/2 there is `:authority`, and Host beside it is nobody's business.
        """
        if self.version == HTTP_2:
            return self.host
        every = [self.host, *(value.strip(" \t") for name, value in self.headers if name.lower() == "host")]
        return ",".join(value for value in every if value)

    def values(self) -> dict[str, list[str]]:
        """The headers as the engine is told of them."""
        found: dict[str, list[str]] = {}
        for name, value in self.headers:
            if name.lower() != "host":
                found.setdefault(name, []).append(value)
        return found


@dataclass(frozen=True, slots=True)
class Ask:
    """One request of one caller at one port. Without `http`, bytes that are none."""

    caller: Caller
    pod: str
    port: int
    http: Http | None

    def located(self, addresses: Mapping[str, str]) -> Ask:
        """The same, from the address that a pod has."""
        address = addresses.get(self.caller.address, self.caller.address)
        return replace(self, caller=replace(self.caller, address=address))

    @property
    def is_plain(self) -> bool:
        """Whether anybody takes it for HTTP: Envoy's inspector takes only ASCII in the first line of HTTP/1."""
        return self.http is not None and (self.http.version == HTTP_2 or self.http.target.isascii())

    def question(self) -> Question:
        common = Question.of(self.caller.source, f"pod:{self.pod}", port=self.port, source_ip=self.caller.address)
        if self.http is None:
            return common
        return Question.of(
            common.source,
            common.destination,
            port=common.port,
            method=self.http.method,
            path=self.http.target,
            host=self.http.hosts,
            headers=self.http.values(),
            source_ip=common.source_ip,
        )
