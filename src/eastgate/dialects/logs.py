"""Decisions in the logs of proxies other than Eastgate's, as their dialect reads them.

Nothing here decides again: a line has the decision, and the parts of the question that the proxy has logged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from eastgate.basics.diagnostics import Code, Diagnostic
from eastgate.basics.records import dataclass
from eastgate.ir import Placement, PolicyRef


class LogLineError(ValueError):
    """A line of a known proxy that contains no decision, or one that cannot be read."""

    def __init__(self, code: Code, message: str, way_out: str) -> None:
        super().__init__(message)
        self.diagnostic = Diagnostic(code, message, None, way_out)


@dataclass(frozen=True, slots=True)
class LoggedEnd:
    """One end of a logged connection. `pod` and `namespace` are those of a pod, `host` is the name of a Service.

    `port` is the port of the pod, and `service_port` that of the Service. `is_gateway`: the client called a Gateway.
    `certificates` is the header x-forwarded-client-cert, which names the clients that a proxy has verified.
    """

    address: str | None = None
    port: int | None = None
    namespace: str | None = None
    pod: str | None = None
    host: str | None = None
    service_port: int | None = None
    identity: str | None = None
    certificates: str | None = None
    is_gateway: bool = False


@dataclass(frozen=True, slots=True)
class LoggedCause:
    """The verdict and its cause; `words` is the cause as text.

    `policy` and `rule` are those that the line names. If it names none, `kinds` are the kinds of the policies that may
    have decided. `unmatched`: no rule allowed the request. `hidden`: the cause is in no line, for example a token.
    `external` is the answer of an external authorizer: allow, deny or error.
    """

    allowed: bool
    words: str
    policy: PolicyRef | None = None
    rule: int | None = None
    kinds: frozenset[str] = frozenset()
    unmatched: bool = False
    hidden: bool = False
    external: str | None = None


@dataclass(frozen=True, slots=True)
class LoggedDecision:
    """A decision of a proxy. Fields that the line does not have are None.

    `proxy` names the proxy that logged it, and `placements` are the places of its layers. `plaintext`: the line shows
    that the connection has no mTLS. `without_layers` is the message for manifests without such a layer.
    """

    proxy: str
    cause: LoggedCause
    placements: frozenset[Placement] = frozenset()
    caller: LoggedEnd = LoggedEnd()
    called: LoggedEnd = LoggedEnd()
    time: str = ""
    plaintext: bool = False
    method: str | None = None
    path: str | None = None
    host: str | None = None
    sni: str | None = None
    protocol: str | None = None
    forwarded_for: str | None = None
    without_layers: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
