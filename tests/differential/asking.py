"""One request as it goes over the wire, and the same as a question to the engine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from eastgate import Question

__all__ = ["TRUST_DOMAIN", "Ask", "Caller", "Http"]

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
    """A request, byte by byte. `headers` are all but the host."""

    method: str = "GET"
    target: str = "/"
    host: str = "h"
    headers: tuple[tuple[str, str], ...] = ()

    def to_bytes(self) -> bytes:
        lines = [f"{self.method} {self.target} HTTP/1.1", f"host: {self.host}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        return "".join(f"{line}\r\n" for line in lines).encode("utf-8", "surrogateescape") + b"\r\n"

    def values(self) -> dict[str, list[str]]:
        """The headers as the engine is told of them."""
        found: dict[str, list[str]] = {}
        for name, value in self.headers:
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
        """Whether anybody takes it for HTTP: Envoy's inspector takes only ASCII in the first line."""
        return self.http is not None and self.http.target.isascii()

    def question(self) -> Question:
        common = Question(self.caller.source, f"pod:{self.pod}", self.port, source_ip=self.caller.address)
        if self.http is None:
            return common
        return Question(
            common.source,
            common.to,
            common.port,
            self.http.method,
            self.http.target,
            self.http.host,
            headers=self.http.values(),
            source_ip=common.source_ip,
        )
