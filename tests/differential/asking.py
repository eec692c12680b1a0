"""A request in the bytes that are sent, and the same request as a question to the engine."""

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
    """A caller and its address. The address `namespace/name` means that of a pod, which the bench looks up."""

    identity: str | None
    address: str

    @property
    def source(self) -> str:
        """Return the account of the cluster, which has a name in every dialect, or else the SPIFFE ID."""
        if self.identity is None:
            return "anonymous"
        account = _ACCOUNT.fullmatch(self.identity)
        return f"sa:{account[1]}/{account[2]}" if account else self.identity


@dataclass(frozen=True, slots=True)
class Http:
    """A request, byte by byte. `headers` has all headers except the first Host."""

    method: str = "GET"
    target: str = "/"
    host: str = "h"
    headers: tuple[tuple[str, str], ...] = ()
    version: str = HTTP_1_1

    def to_bytes(self) -> bytes:
        """Return the request in HTTP/1."""
        lines = [f"{self.method} {self.target} {self.version}", f"host: {self.host}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        return "".join(f"{line}\r\n" for line in lines).encode("utf-8", "surrogateescape") + b"\r\n"

    def fields(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield the fields of the request in HTTP/2: names in lower case, pseudo-headers first."""
        pseudo = ((":method", self.method), (":scheme", "http"), (":path", self.target), (":authority", self.host))
        plain = ((name.lower(), value.strip(" \t")) for name, value in self.headers)
        for name, value in (*pseudo, *plain):
            yield name.encode("utf-8", "surrogateescape"), value.encode("utf-8", "surrogateescape")

    @property
    def hosts(self) -> str:
        """Return the host for the engine. Several hosts become one with commas, which is invalid. Envoy drops empty
        hosts, and passes on the host that it has compared.

        HTTP/2 uses `:authority`, and ignores Host.
        """
        if self.version == HTTP_2:
            return self.host
        every = [self.host, *(value.strip(" \t") for name, value in self.headers if name.lower() == "host")]
        return ",".join(value for value in every if value)

    def values(self) -> dict[str, list[str]]:
        """Return the headers for the engine."""
        found: dict[str, list[str]] = {}
        for name, value in self.headers:
            if name.lower() != "host":
                found.setdefault(name, []).append(value)
        return found


@dataclass(frozen=True, slots=True)
class Ask:
    """One request of one caller at one port. Without `http`, bytes that are not HTTP."""

    caller: Caller
    pod: str
    port: int
    http: Http | None

    def located(self, addresses: Mapping[str, str]) -> Ask:
        """Return the same request, with the address of its pod."""
        address = addresses.get(self.caller.address, self.caller.address)
        return replace(self, caller=replace(self.caller, address=address))

    @property
    def is_plain(self) -> bool:
        """Return whether Envoy's inspector reads it as HTTP: the first line of HTTP/1 must be ASCII."""
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
