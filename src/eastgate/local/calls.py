"""Makes real calls through the mesh, and decides the same question with the engine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

from eastgate.authority.authority import Authority
from eastgate.authority.decisions import Decision
from eastgate.authority.questions import (
    BAD_ATTRIBUTE,
    BAD_DESTINATION,
    BAD_SOURCE,
    Arrival,
    Question,
    QuestionError,
    arrivals,
    ends,
)
from eastgate.authority.questions.derived import address_of
from eastgate.authority.reading import ManifestError
from eastgate.cluster.ends import Address, Anonymous
from eastgate.ir import Site
from eastgate.ir.attributes import ADDRESS, IDENTITY, MESH_NAME, PORT, SOURCE_WORKLOAD, each_header
from eastgate.ir.symbolic.names import MeshNames
from eastgate.local.calling import CallResult, CheckedCall, Client, make_call
from eastgate.local.gateway_calls import GatewayCaller, McpRequest
from eastgate.local.machine.connection import HttpRequest, Target
from eastgate.local.mesh import LocalMesh
from eastgate.settings import Settings

# Compares a call with the answer of `check`, and finds the reason of a difference. A local mesh differs from the
# cluster that `check` is about. Its addresses are those of one machine, all workloads have a proxy of Eastgate, and its
# gateways have no network in front of them.


Check: TypeAlias = Callable[[Settings], Authority]
_AT_GATEWAY = "the gateways of a local mesh do not enforce network policies"
_NO_HANDSHAKE = "the TLS handshake failed, so that no policy was asked"
_CLOSED = "the port is closed, since a policy there cannot be enforced"
_BEYOND = "the gateway decides by an input that no question has: the answer of an authorizer, a route or a session"
_BEHIND_GATEWAY = "the gateway let it through, and a sidecar behind the gateway closed the connection"
_UNPROVEN = "the caller has no certificate, and its address proves no pod here (with `up --by-address` it does)"
_OTHER_ADDRESSES = "the call comes from an address of this machine, and `check` is about the addresses of the cluster"
_UNEXPLAINED = "not explained"


async def with_check(mesh: LocalMesh, call: CallResult, asked: Question) -> CallResult:
    """Return the call with the answer of `check` to its question, if this mesh can ask."""
    if mesh.check is None:
        return call
    question = replace(call.question, source_ip=asked.source_ip)
    answer = await asyncio.to_thread(_answer, mesh.check, mesh.chosen_settings, question)
    compared = replace(call, check=CheckedCall(question, answer))
    if compared.is_as_checked or not isinstance(answer, Decision):
        return compared
    cause = await asyncio.to_thread(_cause, mesh, mesh.check, compared, question, answer)
    return replace(compared, check=CheckedCall(question, answer, (cause,)))


def _answer(check: Check, settings: Settings, question: Question) -> Decision | QuestionError:
    """Return the answer of `check` with these settings. Manifests with errors give no answer."""
    try:
        return check(settings).decide(question)
    except QuestionError as error:
        return error
    except ManifestError as error:
        first = error.diagnostics[0]
        return QuestionError(first.code, first.message, first.help, error.diagnostics)


def _cause(mesh: LocalMesh, check: Check, call: CallResult, question: Question, answer: Decision) -> str:
    """Return the reason why the mesh and `check` differ: for example, other settings or addresses."""
    workload, _, port = call.at.rpartition(":")
    is_at_gateway = workload in mesh.gateways
    is_unproven = call.observation is not None and call.observation.peer in (None, "none") and _is_of_pod(question)
    if call.observation is not None and call.observation.level == "handshake":
        return _NO_HANDSHAKE
    if not call.allowed and mesh.enforcement.closure_of(workload, int(port)) is not None:
        return _CLOSED
    if call.is_beyond_engine:
        return _BEYOND
    if is_at_gateway and _is_by_network(answer):
        return _AT_GATEWAY if call.answered else _BEHIND_GATEWAY
    if is_unproven and not is_at_gateway and _is_by_network(call.decision):
        return _UNPROVEN
    given, used = mesh.chosen_settings.to_json(), mesh.settings.to_json()
    changed = [name for name in used if used[name] != given[name]]
    if changed and _is_answered(check, mesh.settings, question, call):
        settings = ", ".join(f"{name}: {used[name]}" for name in changed)
        options = " ".join(f"--set {name}={used[name]}" for name in changed)
        return f"a mesh decides with {settings}; so does `check {options}`"
    if _is_answered(check, mesh.settings, call.question, call):
        return _OTHER_ADDRESSES
    return _UNEXPLAINED


def _is_answered(check: Check, settings: Settings, question: Question, call: CallResult) -> bool:
    """Return whether `check` gives the verdict of the proxy."""
    answer = _answer(check, settings, question)
    return isinstance(answer, Decision) and answer.allowed == call.allowed


def _is_of_pod(question: Question) -> bool:
    """Return whether a question is about a caller with a pod, and so with an identity."""
    return not isinstance(question.source, Anonymous | Address)


def _is_by_network(decision: Decision) -> bool:
    """Return whether a network policy decided."""
    return any(layer.at.site is Site.NETWORK and layer.name == decision.outcome.layer for layer in decision.layers)


__all__ = ["CallResult", "McpRequest", "client_of", "make_calls"]

_TIMEOUT_SECONDS = 5.0


async def make_calls(
    mesh: LocalMesh,
    question: Question,
    *,
    body: bytes = b"",
    raw: bool = False,
    mcp: McpRequest | None = None,
    timeout: float = _TIMEOUT_SECONDS,
) -> list[CallResult]:
    """Call every workload, or gateway, that the question leads to. Raises QuestionError if it leads nowhere.

    `raw`: connect and send the body as it is, instead of an HTTP request. `mcp`: speak MCP with the server.
    """
    if isinstance(question.destination, ends.Gateway | ends.Route | ends.Backend):
        made = await _call_gateways(mesh, question, body, raw, mcp, timeout)
    elif mcp is not None:
        raise QuestionError(
            BAD_DESTINATION, f"{question.destination} is no gateway", "MCP is spoken with gateway:, route: or backend:"
        )
    else:
        made = await _call_workloads(mesh, question, body, raw, timeout)
    return [await with_check(mesh, call, question) for call in made]


async def _call_workloads(
    mesh: LocalMesh, question: Question, body: bytes, raw: bool, timeout: float
) -> list[CallResult]:
    asked = _complete(question, raw)
    world = mesh.authority.world
    made: list[CallResult] = []
    for arrival in arrivals(asked, world, mesh.settings):
        workload = str(arrival.points[0])
        site = mesh.sites.get(workload)
        if site is None:
            raise QuestionError(
                BAD_DESTINATION, f"{arrival.where} has no proxy in this mesh", "call a pod or a Service"
            )
        port = _port(arrival, site.ports)
        client = _client_at(mesh, arrival, question)
        call_question = replace(
            asked,
            source=_canonical(asked.source, mesh),
            destination=ends.Pod(world.workloads[workload].namespace, world.workloads[workload].name),
            port=port,
            source_ip=client.address,
        )
        pod = world.workloads[workload]
        request: HttpRequest | bytes = (
            body if raw else _request(call_question, body, f"{pod.name}.{pod.namespace}:{port}")
        )
        target = Target(site.address, site.ports[port], through=mesh.tunnel_to(site))
        called, observation = await make_call(mesh, client, target, request, timeout)
        made.append(
            CallResult(call_question, f"{workload}:{port}", called, observation, mesh.authority.enforced(call_question))
        )
    return made


async def _call_gateways(
    mesh: LocalMesh, question: Question, body: bytes, raw: bool, mcp: McpRequest | None, timeout: float
) -> list[CallResult]:
    if raw:
        raise QuestionError(BAD_DESTINATION, f"{question.destination} reads HTTP", "leave out --raw")
    made: list[CallResult] = []
    for caller in _callers(mesh, question):
        asked = replace(question, source=_canonical(question.source, mesh), source_ip=caller.address)
        calling = GatewayCaller(mesh, caller, timeout)
        made += [await calling.call(entrance, body, mcp) for entrance in calling.entrances(asked, mcp)]
    return made


def _callers(mesh: LocalMesh, question: Question) -> list[Client]:
    """Return the clients that a question means."""
    every = arrivals(question, mesh.authority.world, mesh.settings)
    return list(dict.fromkeys(_client_at(mesh, arrival, question) for arrival in every))


def _complete(question: Question, raw: bool) -> Question:
    """Fill in the method, path and headers of the HTTP request."""
    if raw:
        return question
    return replace(
        question, method=question.method or "GET", path=question.path or "/", headers=dict(question.headers or {})
    )


def _port(arrival: Arrival, ports: Mapping[int, int]) -> int:
    port = arrival.request.get(PORT)
    if isinstance(port, int):
        if port not in ports:
            declared = ", ".join(map(str, sorted(ports))) or "none"
            raise QuestionError(BAD_ATTRIBUTE, f"{arrival.where} has no port {port}", f"it has {declared}")
        return port
    if len(ports) != 1:
        declared = ", ".join(map(str, sorted(ports))) or "none"
        raise QuestionError(
            BAD_ATTRIBUTE, f"{arrival.where} has not one port but {len(ports)}", f"--port, of {declared}"
        )
    return next(iter(ports))


def _client_at(mesh: LocalMesh, arrival: Arrival, question: Question) -> Client:
    """Return the client of an arrival. Raises QuestionError if the question has another address than the client's."""
    client = client_of(mesh, arrival)
    given = question.source_ip
    if given is not None and address_of(given) != client.address:
        message = f"{question.source} calls from its own address, {client.address}, and not from {given}"
        raise QuestionError(BAD_ATTRIBUTE, message, "leave out --source-ip")
    return client


def client_of(mesh: LocalMesh, arrival: Arrival) -> Client:
    """Return the client that makes the call of an arrival. A pod calls from its own address."""
    request = arrival.request
    identity, name = request.get(IDENTITY), request.get(MESH_NAME)
    if identity is None and name is not None:
        raise QuestionError(
            BAD_SOURCE, f"`{name}` is no SPIFFE ID: certificates here have no other names", "use sa: or pod:"
        )
    pod = mesh.sites.get(str(request.get(SOURCE_WORKLOAD)))
    address = request.get(ADDRESS)
    if pod is not None:
        return Client(str(identity) if identity else None, pod.address)
    if isinstance(address, str) and not address.startswith("127."):
        raise QuestionError(BAD_ATTRIBUTE, f"no client can call from {address} here", "use an address in 127.0.0.0/8")
    return Client(str(identity) if identity else None, address if isinstance(address, str) else mesh.own_address)


def _canonical(source: ends.Source, mesh: LocalMesh) -> ends.Source:
    """Return the account of a SPIFFE ID: in the mesh, an account has all of its names."""
    account = MeshNames(mesh.settings).account(source.value) if isinstance(source, ends.SpiffeId) else None
    return ends.ServiceAccount(*account) if account is not None else source


def _request(question: Question, body: bytes, host: str) -> HttpRequest:
    headers = [("host", question.host or host), *each_header(question.headers or {})]
    return HttpRequest(question.method or "GET", question.path or "/", tuple(headers), body)
