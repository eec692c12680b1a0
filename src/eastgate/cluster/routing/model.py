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
    """Match the requests of the calls that a match means; to a GRPCRoute no request but a POST is a call."""
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
    """A destination of a rule. `granted`: it is in the route's own namespace, or a ReferenceGrant lets it be named.

    `filters` are applied after those of the rule. What is `unsupported` of them closes this backend.
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
        """Tell whether a redirect answers what would go here."""
        return any(isinstance(of, Redirect) for of in self.filters)


@dataclass(frozen=True, slots=True)
class Routed:
    """A rule that a request may take: rule number `rule` of `route`, counted from 0.

    The request goes to ANY of `backends`, by weight; where there is none the gateway answers with an error. `answered`:
    a redirect answers it at the gateway, and it reaches no backend. The request came in by `listener` of `gateway`.
    """

    route: Route
    rule: int
    backends: tuple[BackendRef, ...]
    answered: bool
    gateway: GatewayNamed | None = field(default=None, compare=False)
    listener: str | None = field(default=None, compare=False)

    @property
    def point(self) -> RuleNamed:
        """Return the point of enforcement that the rule is, for what comes in by its listener."""
        route = RouteNamed(self.route.namespace, self.route.name, self.route.kind)
        return RuleNamed(self.gateway, self.listener, route, self.rule, name_of_rule(self.spec, self.rule))

    @property
    def spec(self) -> RouteRule | GrpcRule | StreamRule:
        """Return the rule as it is written."""
        return rules_of(self.route)[self.rule]

    @property
    def is_stream(self) -> bool:
        """Tell whether connections are led on as they are, so that the gateway sees no HTTP."""
        return isinstance(self.spec, StreamRule)

    @property
    def filters(self) -> tuple[RouteFilter, ...]:
        """Return the filters of the rule, in order."""
        return self.spec.filters

    @property
    def unsupported(self) -> tuple[Unsupported, ...]:
        """Return what closes this rule at Eastgate's gateway; what closes a backend only is with the backend."""
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
    """Return the name that a `sectionName` means a rule by: its own, else `rule-N`, counted from 1."""
    return rule.name or f"rule-{number + 1}"
