"""A walk of the table by virtual hosts finds the rules that requests take."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from eastgate.cluster import Gateway, HeaderModifier, Listener, Redirect, Route, RouteBackend, RouteRule, World
from eastgate.cluster.routing import Routed, RoutingTable
from eastgate.cluster.routing.hostnames import hostnames_of
from eastgate.engine.reference import holds
from eastgate.ir import Known, Request
from eastgate.ir.attributes import HOST, PORT, SNI, Attribute
from tests.cluster.routing import test_generated as generated
from tests.cluster.routing.building import gateway, https, possible, possible_routes, request, route
from tests.cluster.routing.test_streams import passthrough, tls


def walked(table: RoutingTable, asked: Request, host: str | None, port: int, tls: bool) -> Routed | None:
    """The rule of a completely known request, by the public view alone."""
    for group in table.groups:
        if (group.port, group.tls) == (port, tls):
            by_hostname = {virtual.hostname: virtual for virtual in group.virtual_hosts()}
            virtual = next((by_hostname[name] for name in hostnames_of(host) if name in by_hostname), None)
            if virtual is not None:
                return next((each.routed for each in virtual.candidates if holds(each.when, asked)), None)
    return None


@settings(max_examples=150, deadline=None)
@given(generated.gateways, generated.routes(expressions_too=True), st.booleans(), generated.known, st.data())
def test_a_plain_request_comes_to_the_same_rule(
    of: Gateway, routes: list[Route], blue: bool, known: dict[Attribute, Known], data: st.DataObject
) -> None:
    port = data.draw(
        st.sampled_from([listener.port for listener in of.listeners if listener.protocol == "HTTP"] or [1])
    )
    world = generated.world_of(routes, blue)
    asked = Request({**known, PORT: port, SNI: None})
    host = known[HOST]
    assert host is None or isinstance(host, str)
    table = RoutingTable.of(world, of)
    assert possible(table, asked) == (walked(table, asked, host, port, tls=False),)


def test_ports_and_hosts_are_there_the_most_specific_first() -> None:
    of = gateway(Listener("p", 80, "HTTP"), https("a", "*.x"), https("b", "b.x"), passthrough("c", "c.x"))
    objects = [route("r", hosts=["d.x", "*.y"]), tls("t", "c.x")]
    plain, secure = RoutingTable.of(World.of(objects), of).groups
    assert [(group.port, group.tls) for group in (plain, secure)] == [(80, False), (443, True)]
    assert [(each.hostname, each.listener.name, len(each.candidates)) for each in plain.virtual_hosts()] == [
        ("d.x", "p", 1),
        ("*.y", "p", 1),
        (None, "p", 0),
    ]
    assert [(each.hostname, each.listener.name, len(each.candidates)) for each in secure.virtual_hosts()] == [
        ("d.x", "a", 1),
        ("c.x", "a", 0),
        ("b.x", "b", 0),
        ("*.x", "a", 0),
    ]
    assert [(each.hostname, each.listener.name, len(each.candidates)) for each in secure.streams()] == [("c.x", "c", 1)]
    assert [listener.name for listener in secure.listeners] == ["a", "b", "c"]


def test_a_rule_brings_its_filters_and_those_of_its_backends() -> None:
    add = HeaderModifier(HeaderModifier.REQUEST, add=(("a", "b"),))
    backends = (RouteBackend("edge", "a", filters=(add,)), RouteBackend("edge", "b", filters=(Redirect(),)))
    written = RouteRule(backends=(*backends, RouteBackend("edge", "c", weight=0)), filters=(add,), name="n")
    world, listening = World.of([route("r", written)]), gateway(Listener("p", 80, "HTTP"))
    (taken,) = possible_routes(world, listening, request("GET /", "a"))
    assert taken is not None
    assert (taken.spec, taken.filters, taken.unsupported) == (written, (add,), ())
    assert [(ref.name, ref.filters, ref.answered) for ref in taken.backends] == [
        ("a", (add,), False),
        ("b", (Redirect(),), True),
    ]
