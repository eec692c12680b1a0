"""Requests of cells as questions for a command: `check --from sa:shop/web --to pod:shop/cart --port 8080`.

A request of a cell may have `any other value` of an attribute, or any caller of a group. A question gets unused names
for such values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from eastgate.cluster import account_of, ends
from eastgate.cluster.question import Question
from eastgate.ir import Known, Request
from eastgate.ir.attributes import (
    ADDRESS,
    APPLICATION,
    AUTHORITY,
    FORWARDED_ADDRESS,
    HOST,
    IDENTITY,
    MCP_METHOD,
    MCP_TOOL,
    METHOD,
    PATH,
    PORT,
    SENT_PATH,
    SNI,
    SOURCE_WORKLOAD,
    TARGET,
    URL_PATH,
    Attribute,
    AttributeKind,
)
from eastgate.ir.spiffe import SCHEME
from eastgate.ir.symbolic.callers import (
    CallerCell,
    IdentityCell,
    OtherIdentities,
    OtherNames,
)
from eastgate.ir.symbolic.cells import OTHER
from eastgate.ir.symbolic.stages import is_answer
from eastgate.reach.destinations import Destination, Entrance

_UNUSED_NAME = "any-other"  # a name that is not in use


def question_of(
    destination: Destination,
    member: str,
    entrance: Entrance,
    cell: CallerCell,
    request: Request,
    trust_domain: str,
    port: int | None = None,
) -> Question:
    """Return a question for a request of a cell to a member of a destination. `port` replaces the entrance's."""
    values = request.values
    service = entrance.service
    to = ends.destination_of(destination.kind, member) if service is None else ends.Service.of_key(service)
    source = source_of_cell(cell, trust_domain, values.get(IDENTITY), values.get(SOURCE_WORKLOAD))
    port = port if port is not None else _port(entrance)
    is_http = values.get(APPLICATION) == "http"
    method = _method(values.get(METHOD)) or ("GET" if is_http else None)
    normalized = (name for name in values if name.kind is AttributeKind.PATH and name not in _PATHS)
    path = next((_path(str(values[name])) for name in (*_PATHS, *normalized) if values.get(name) is not None), None)
    host = next((_host(values[name]) for name in (HOST, AUTHORITY) if values.get(name) is not None), None)
    queries = [(name.key, value) for name, value in values.items() if name.kind is AttributeKind.QUERY]
    if queries:
        pairs = [f"{key}={_text(each)}" for key, value in queries for each in _each(value)]
        path = f"{path or '/'}?{'&'.join(pairs)}" if pairs else path
    claims = {
        name.key: _text(value)
        for name, value in values.items()
        if name.kind is AttributeKind.CLAIM and value is not None
    }
    message, tool = values.get(MCP_METHOD), values.get(MCP_TOOL)
    return Question(
        source,
        to,
        port,
        method=method,
        path=path,
        host=host,
        sni=_host(values[SNI]) if values.get(SNI) is not None else None,
        headers=_headers(values),
        mcp_method=_text(message) if message is not None else None,
        tool=_text(tool) if tool is not None else None,
        source_ip=str(values[ADDRESS]) if values.get(ADDRESS) is not None else None,
        forwarded_for=str(forwarded) if (forwarded := values.get(FORWARDED_ADDRESS)) is not None else None,
        claims=claims or None,
        external_auth={
            name.key: "allow" if value == "allow" else "deny" for name, value in values.items() if is_answer(name)
        },
    )


_PATHS = (PATH, URL_PATH, TARGET, SENT_PATH)


def _port(entrance: Entrance) -> int | None:
    if entrance.ports:
        return entrance.ports[0]
    port = entrance.facts.values.get(PORT)
    return port if isinstance(port, int) else None


def source_of_cell(cell: CallerCell, trust_domain: str, identity: Known = None, workload: Known = None) -> ends.Source:
    """Return a caller of a cell. `identity` and `workload`: the values that a request demands."""
    if workload is not None and OTHER not in str(workload):
        return ends.Pod.of_key(str(workload))
    asked = _UNUSED_NAME if identity is None else _text(identity)
    fresh = f"{_UNUSED_NAME}.example" if isinstance(cell, OtherIdentities | OtherNames) else _UNUSED_NAME
    known, name = cell.example(fresh, asked.strip("/"))
    if name is not None:
        return ends.SpiffeId(known) if known is not None else ends.CertificateName(name)
    if known is None:
        return ends.ANONYMOUS
    if asked.startswith(SCHEME) and not isinstance(cell, IdentityCell):
        known = asked
    if isinstance(cell, OtherIdentities):
        return _no_account(known, trust_domain)
    return _account(known, trust_domain)


def _no_account(identity: str, trust_domain: str) -> ends.SpiffeId:
    """Return a SPIFFE ID with this prefix that is not the ID of a service account of the trust domain."""
    account = account_of(identity)
    is_own = account is not None and account[0] == trust_domain
    return ends.SpiffeId(f"{identity}/{_UNUSED_NAME}" if is_own else identity)


def _account(identity: str, trust_domain: str) -> ends.Source:
    domain, *account = account_of(identity) or (None,)
    return ends.ServiceAccount(*account) if domain == trust_domain else ends.SpiffeId(identity)


def _method(value: Known) -> str | None:
    return None if value is None else str(value).replace(OTHER, "TRACE")


def _path(value: str) -> str:
    path = value.replace(OTHER, _UNUSED_NAME)
    return path if path.startswith("/") or path == "*" else f"/{path}"


def _host(value: Known) -> str:
    return f"{_UNUSED_NAME}.example" if value == OTHER else _text(value)


def _text(value: Known) -> str:
    return str(value).replace(OTHER, _UNUSED_NAME)


def _each(value: Known) -> Iterator[Known]:
    yield from value if isinstance(value, tuple) else () if value is None else (value,)


def _headers(values: Mapping[Attribute, Known]) -> dict[str, str | list[str]] | None:
    headers = {
        name.key: [_text(each) for each in value] if isinstance(value, tuple) else _text(value)
        for name, value in values.items()
        if name.is_header and value is not None
    }
    return headers or None
