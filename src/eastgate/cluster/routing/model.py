"""The nouns of routing: rules that a request may take, and their backends."""

from __future__ import annotations

import re
from dataclasses import field

from eastgate.basics.records import dataclass
from eastgate.cluster import GrpcMatch, GrpcRule, Redirect, Route, RouteFilter, RouteRule, StreamRule, Unsupported
from eastgate.cluster.points import RuleNamed
from eastgate.cluster.routes import CANONICAL
from eastgate.cluster.targets import GatewayNamed, RouteNamed
from eastgate.ir import ALWAYS, Is, OneOf, Predicate, all_of
from eastgate.ir.attributes import METHOD, PATH

# Calls of gRPC as a gateway sees them: HTTP requests to `/<service>/<method>`.


_POST = Is(METHOD, OneOf(frozenset({"POST"})))
_ANY = "[^/]+"


def call_predicate(match: GrpcMatch) -> Predicate:
    """Match the requests of the calls in a match. For a GRPCRoute, only a POST is a call."""
    return all_of((_POST, _path(match), *CANONICAL.headers(match.headers)))


def _path(match: GrpcMatch) -> Predicate:
    if match.service is None and match.method is None:
        return ALWAYS
    if match.regex:
        service, method = (f"(?:{name})" if name is not None else _ANY for name in (match.service, match.method))
        return CANONICAL.pattern(PATH, f"/{service}/{method}")
    if match.service is None:
        return CANONICAL.pattern(PATH, f"/{_ANY}/{re.escape(match.method or '')}")
    if match.method is None:
        return CANONICAL.under(f"/{match.service}/")
    return CANONICAL.equal(f"/{match.service}/{match.method}")


@dataclass(frozen=True, slots=True)
class BackendRef:
    """A destination of a rule. `granted`: it is in the route's own namespace, or a ReferenceGrant allows the reference.

    `filters` are applied after those of the rule. An `unsupported` one closes this backend.
    """

    group: str
    kind: str
    namespace: str
    name: str
    port: int | None
    weight: int
    granted: bool
    filters: tuple[RouteFilter, ...] = ()
    unsupported: tuple[Unsupported, ...] = ()

    @property
    def answered(self) -> bool:
        """Return whether a redirect answers the requests for this backend."""
        return any(isinstance(of, Redirect) for of in self.filters)


@dataclass(frozen=True, slots=True)
class Routed:
    """A rule that a request may take: rule number `rule` of `route`, counted from 0.

    The request goes to ANY of `backends`, by weight; without backends, the gateway answers with an error. `answered`: a
    redirect answers it at the gateway, and it reaches no backend. The request came in by `listener` of `gateway`.
    """

    route: Route
    rule: int
    backends: tuple[BackendRef, ...]
    answered: bool
    gateway: GatewayNamed | None = field(default=None, compare=False)
    listener: str | None = field(default=None, compare=False)

    @property
    def point(self) -> RuleNamed:
        """Return the rule as a point of enforcement, for requests by its listener."""
        route = RouteNamed(self.route.namespace, self.route.name, self.route.kind)
        return RuleNamed(self.gateway, self.listener, route, self.rule, name_of_rule(self.spec, self.rule))

    @property
    def spec(self) -> RouteRule | GrpcRule | StreamRule:
        """Return the rule as written."""
        return rules_of(self.route)[self.rule]

    @property
    def is_stream(self) -> bool:
        """Return whether connections are forwarded as they are, so that the gateway sees no HTTP."""
        return isinstance(self.spec, StreamRule)

    @property
    def filters(self) -> tuple[RouteFilter, ...]:
        """Return the filters of the rule, in order."""
        return self.spec.filters

    @property
    def unsupported(self) -> tuple[Unsupported, ...]:
        """Return the parts that close the whole rule at Eastgate's gateway. A backend has its own list."""
        return self.spec.unsupported


def rules_of(route: Route) -> tuple[RouteRule | GrpcRule | StreamRule, ...]:
    """Return the rules of a route of any kind."""
    match route.kind:
        case "HTTPRoute":
            return route.rules
        case "GRPCRoute":
            return route.grpc_rules
        case _:
            return route.stream_rules


def name_of_rule(rule: RouteRule | GrpcRule | StreamRule, number: int) -> str:
    """Return the name of a rule for a `sectionName`: its own name, or `rule-N`, counted from 1."""
    return rule.name or f"rule-{number + 1}"
