"""Extension providers: the external authorizers that CUSTOM policies name, as the MeshConfig declares them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.cluster import dns_label_problem
from eastgate.ir import AuthorizerName, ExternalAuthorizer, ExternalProtocol

_KINDS: Final = {"envoyExtAuthzGrpc": ExternalProtocol.GRPC, "envoyExtAuthzHttp": ExternalProtocol.HTTP}
_HEADER_LISTS: Final = (
    "includeRequestHeadersInCheck",
    "includeHeadersInCheck",
    "headersToDownstreamOnDeny",
    "headersToDownstreamOnAllow",
    "headersToUpstreamOnAllow",
)
_SERVICE = regex(r"(?P<service>[a-z0-9-]+)\.(?P<namespace>[a-z0-9-]+)\.svc(?:\..+)?")
_HOST = regex(r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*")
_STATUS = regex("[1-5][0-9]{2}")


@dataclass(frozen=True, slots=True)
class Provider:
    """An external authorizer by its name in the mesh. `authorizer` is the name under which answers are given."""

    name: str
    protocol: ExternalProtocol
    authorizer: str
    host: str
    fail_open: bool = False


def read_providers(written: object) -> Iterator[Provider]:
    """Yield the providers that can be asked. One with errors, or with the name of another, is none."""
    entries = [entry for entry in written if isinstance(entry, dict)] if isinstance(written, list) else []
    names = Counter(entry.get("name") for entry in entries if isinstance(entry.get("name"), str))
    for entry in entries:
        name = entry.get("name")
        kinds = [kind for kind in _KINDS if isinstance(entry.get(kind), dict)]
        if isinstance(name, str) and names[name] == 1 and dns_label_problem(name) is None and len(kinds) == 1:
            provider = _provider(name, _KINDS[kinds[0]], entry[kinds[0]])
            if provider is not None:
                yield provider


def _provider(name: str, protocol: ExternalProtocol, content: Mapping[str, object]) -> Provider | None:
    service, port = content.get("service"), _number(content.get("port"))
    if not isinstance(service, str) or port is None or not 1 <= port <= 65535:
        return None
    _, _, host = service.rpartition("/")
    prefix, fail_open = content.get("pathPrefix") or "/", content.get("failOpen") or False
    status = str(content.get("statusOnError") or "403")
    if not _HOST.fullmatch(host) or not str(prefix).startswith("/") or not isinstance(fail_open, bool):
        return None
    if not _STATUS.fullmatch(status) or any("*" in _list(content, field) for field in _HEADER_LISTS):
        return None
    return Provider(name, protocol, _authorizer(host, port, protocol, str(prefix)), host, fail_open)


def _number(value: object) -> int | None:
    """Return a number, which protobuf lets people write as a string, too."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _list(content: Mapping[str, object], field: str) -> list[object]:
    value = content.get(field)
    return value if isinstance(value, list) else []


def _authorizer(host: str, port: int, protocol: ExternalProtocol, prefix: str) -> str:
    """Return the name of an authorizer: a Service of the cluster that can be asked, or else a host and its port."""
    service = _SERVICE.fullmatch(host)
    if service is None:
        return f"{host}:{port}"
    path = prefix if protocol is ExternalProtocol.HTTP and prefix != "/" else ""
    return AuthorizerName(ExternalAuthorizer(service["namespace"], service["service"], port, protocol, path))
