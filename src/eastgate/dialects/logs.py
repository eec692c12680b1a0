"""Decisions in the logs of proxies that are not ours, as the dialect of these proxies reads them.

Nothing here decides again: a line says what was decided, and as much of the question as the proxy has logged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from eastgate.basics.diagnostics import Code, Diagnostic
from eastgate.basics.records import dataclass
from eastgate.ir import Placement, PolicyRef


class LogLineError(ValueError):
    """A line of a known proxy that tells of no decision, or of one that cannot be understood."""

    def __init__(self, code: Code, message: str, way_out: str) -> None:
        super().__init__(message)
        self.diagnostic = Diagnostic(code, message, None, way_out)


@dataclass(frozen=True, slots=True)
class LoggedEnd:
    """One end of a logged connection. `pod` and `namespace` are those of a pod, `host` is the name of a Service.

    `port` is that of the pod, `service_port` that of the Service. `is_gateway`: a Gateway was called.
    `certificates` is the header x-forwarded-client-cert, by which a proxy says whom it has verified.
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
    """The verdict, and what decided: `words` say it for people.

    `policy` is the one that the line names, and `rule` its rule; `kinds` are those of the policies that may have
    decided where it names none. `unmatched`: no rule allowed it. `hidden`: it was refused for something that no line
    has, a token for example. `external` is the answer of an external authorizer: allow, deny or error.
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
    """A decision of a proxy. What is None is not in the line.

    `proxy` says what has logged it, and `placements` where its layers are. `plaintext`: the line shows that the
    connection has no mTLS. `without_layers` is what to say where the manifests have no such layer.
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
