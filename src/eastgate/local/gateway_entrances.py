"""Finds the gateways for a question, and the way in which a client must connect to them."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from dataclasses import replace

from eastgate.authority.questions import BAD_ATTRIBUTE, BAD_DESTINATION, NOT_DECLARED, Question, QuestionError, ends
from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex
from eastgate.cluster import GATEWAY_GROUP, Gateway, Listener, Route, World
from eastgate.cluster.routing import ListenerGroup
from eastgate.cluster.routing.certificates import listener_certificates
from eastgate.cluster.routing.hostnames import comparable, hostnames_of
from eastgate.cluster.routing.model import rules_of
from eastgate.control.gateway_nodes import gateway_node, ports_of_gateway
from eastgate.control.gateways import GatewaySite
from eastgate.ir.addresses import comparable_host
from eastgate.local.calling import Client
from eastgate.local.machine.connection import Target
from eastgate.local.mesh import LocalMesh

_NAME = regex(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?")
_MCP_PATH = "/mcp"


@dataclass(frozen=True, slots=True)
class GatewayEntrance:
    """A port of a gateway, and the question as the gateway gets it, with the values of the request."""

    site: GatewaySite
    group: ListenerGroup
    question: Question

    @property
    def port(self) -> int:
        """Return the port of the listener."""
        return self.group.port

    @property
    def listener(self) -> Listener | None:
        """Return the listener that the name in a handshake chooses."""
        tables = self.group.tables
        names = hostnames_of(comparable(self.target.server_name))
        return next((tables[name].listener for name in names if name in tables), None)

    @property
    def target(self) -> Target:
        """Return the address to connect to, and the server name for TLS: the host's, if it is one."""
        name = comparable_host(self.question.host or "")
        server_name = name if _NAME.fullmatch(name) else None
        return Target(self.site.address, self.site.ports[self.port], server_name)


def entrances(mesh: LocalMesh, question: Question, *, speaks_mcp: bool) -> list[GatewayEntrance]:
    """Return the entrances for a question: at a gateway, or at the gateways that lead to a route or a backend.

    Attributes that a client knows, and the question leaves out, are filled in. Raises QuestionError without a gateway.
    """
    world = mesh.authority.world
    to = question.destination
    path = question.path or (_MCP_PATH if speaks_mcp else "/")
    if isinstance(to, ends.Gateway):
        site = mesh.gateways.get(gateway_node(to.namespace, to.name))
        if site is None:
            raise QuestionError(NOT_DECLARED, f"no Gateway {to.key} runs in this mesh", _declared(mesh))
        return [_entrance(site, world, question, path, question.host)]
    if isinstance(to, ends.Backend):
        backend = world.backends.get(to.key)
        path = question.path or (backend.path if backend is not None and speaks_mcp else path) or path
    routes = [route for route in world.routes.values() if _is_meant(route, to)]
    found = [
        _entrance(site, world, question, path, question.host or _first_host(route), parent_port)
        for route in sorted(routes, key=lambda route: route.key)
        for site, parent_port in _gateways_of(route, mesh)
    ]
    if not found:
        raise QuestionError(BAD_DESTINATION, f"no gateway of this mesh leads to {to}", _declared(mesh))
    return found


def _declared(mesh: LocalMesh) -> str:
    return f"there are {', '.join(sorted(mesh.gateways))}" if mesh.gateways else "the manifests have no Gateway"


def _is_meant(route: Route, to: object) -> bool:
    if isinstance(to, ends.Route):
        return (route.namespace, route.name) == (to.namespace, to.name)
    return isinstance(to, ends.Backend) and any(
        (ref.namespace, ref.name) == (to.namespace, to.name) and ref.kind != "Service"
        for rule in rules_of(route)
        for ref in rule.backends
    )


def _gateways_of(route: Route, mesh: LocalMesh) -> Iterator[tuple[GatewaySite, int | None]]:
    for parent in route.parents:
        site = mesh.gateways.get(gateway_node(parent.namespace, parent.name))
        if site is None or (parent.group, parent.kind) != (GATEWAY_GROUP, "Gateway"):
            continue
        listeners = mesh.authority.world.gateways[site.key].listeners
        named = (listener.port for listener in listeners if listener.name == parent.section_name)
        yield site, parent.port or next(named, None)


def _first_host(route: Route) -> str | None:
    """Return a host that a route is for."""
    exact = (hostname for hostname in route.hostnames if not hostname.startswith("*."))
    host = next(exact, None)
    if host is None and route.hostnames:
        return f"any{route.hostnames[0][1:]}"
    return host


def _entrance(
    site: GatewaySite,
    world: World,
    question: Question,
    path: str,
    host: str | None,
    parent_port: int | None = None,
) -> GatewayEntrance:
    port = _port(site, question.port or parent_port)
    group = ports_of_gateway(world, world.gateways[site.key])[port]
    asked = host or _host_of(group) or f"{site.gateway.name}.{site.gateway.namespace}:{port}"
    completed = replace(
        question,
        destination=ends.Gateway(site.gateway.namespace, site.gateway.name),
        port=port,
        host=asked,
        path=path,
        method=question.method or "GET",
        headers=dict(question.headers or {}),
    )
    entrance = GatewayEntrance(site, group, completed)
    name = entrance.target.server_name if group.tls else None
    entrance = replace(entrance, question=replace(completed, sni=name or ""))
    if group.tls and entrance.listener is not None and entrance.listener.passes_tls_through:
        message = f"{site.node} passes TLS with {asked} through to a server, whose CA this mesh does not know"
        raise QuestionError(BAD_DESTINATION, message, f"call {site.address}:{site.ports[port]} with a client of yours")
    return entrance


def _host_of(group: ListenerGroup) -> str | None:
    """Return the host of a listener, unless a listener is for any host."""
    names = [listener.hostname for listener in group.listeners]
    return None if None in names else next((name for name in names if name and not name.startswith("*.")), None)


def _port(site: GatewaySite, port: int | None) -> int:
    declared = ", ".join(map(str, sorted(site.ports))) or "none"
    if port is None and len(site.ports) != 1:
        message = f"{site.node} has not one port but {len(site.ports)}"
        raise QuestionError(BAD_ATTRIBUTE, message, f"--port, of {declared}")
    chosen = next(iter(site.ports)) if port is None else port
    if chosen not in site.ports:
        raise QuestionError(BAD_ATTRIBUTE, f"{site.node} has no port {chosen}", f"it has {declared}")
    return chosen


async def tls_of(mesh: LocalMesh, client: Client, entrance: GatewayEntrance) -> ssl.SSLContext | None:
    """Return the TLS settings of a client; None for clear text.

    A gateway shows a certificate of the mesh, or that of the listener's Secret. The client accepts no other.
    """
    is_tls = entrance.group.tls
    if client.identity is not None:
        context = await mesh.certificates.context(client.identity)
    elif is_tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False  # the client accepts only the expected certificate
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.load_verify_locations(cadata=mesh.certificates.bundles.pem(mesh.certificates.bundles.own))
    else:
        return None
    world = mesh.authority.world
    if is_tls and entrance.listener is not None:
        _trust(context, world, world.gateways[entrance.site.key], entrance.listener)
    return context


def _trust(context: ssl.SSLContext, world: World, gateway: Gateway, listener: Listener) -> None:
    """Trust the certificates of a listener's Secrets, without regard to their issuers."""
    chains = [each.chain for each in listener_certificates(world, gateway, listener) if each.problem is None]
    for chain in chains:
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # these certificates need not follow the rules of a mesh
        try:
            context.load_verify_locations(cadata=chain.decode("ascii", "replace"))
        except ssl.SSLError:  # the gateway cannot read it either, and has closed the listener
            continue
