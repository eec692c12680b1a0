"""The cluster: namespaces, workloads, services, gateways, routes, and their identities.

`interpret` turns a manifest into an object, `World` holds objects and answers questions about them.
Start reading at `pods.py` and `world.py`.
"""

from eastgate.cluster.changes import Change
from eastgate.cluster.externals import ExternalWorkload
from eastgate.cluster.gateways import (
    GATEWAY_GROUP,
    ROUTE_KINDS,
    AllowedRoutes,
    Backend,
    Gateway,
    GrantFrom,
    GrantTo,
    Listener,
    ParentRef,
    ReferenceGrant,
    Route,
    RoutesFrom,
)
from eastgate.cluster.interpret import interpret
from eastgate.cluster.kinds import WorldObject, object_id, uses, uses_kind
from eastgate.cluster.labels import Operator, Requirement, Selector, is_added_label
from eastgate.cluster.manifest import Manifest
from eastgate.cluster.names import dns_label_problem, dns_subdomain_problem, label_key_problem, label_value_problem
from eastgate.cluster.objects import NAME_LABEL, Namespace, ObjectId, Service, ServiceAccount, ServicePort, moment
from eastgate.cluster.patterns import matches_pattern, pattern_problem, spans_first_match
from eastgate.cluster.pods import (
    API_KINDS,
    CONTROLLER_KINDS,
    ContainerPort,
    Controller,
    HttpProbe,
    Owner,
    Pod,
    Workload,
)
from eastgate.cluster.routes import (
    GrpcMatch,
    GrpcRule,
    PathMatch,
    PathType,
    RouteBackend,
    RouteMatch,
    RouteRule,
    ValueMatch,
)
from eastgate.cluster.secrets import Secret
from eastgate.cluster.targets import (
    BackendNamed,
    Everything,
    ExternalsMatching,
    GatewayNamed,
    PodNamed,
    PodsAcross,
    PodsMatching,
    PodsOfAccount,
    PodsOfService,
    PodsOwnedBy,
    RouteNamed,
    Target,
)
from eastgate.cluster.world import LiveWorld, World
from eastgate.ir.service_accounts import account_of, service_account_id
from eastgate.ir.spiffe import spiffe_problem, trust_domain_problem

__all__ = [
    "API_KINDS",
    "CONTROLLER_KINDS",
    "GATEWAY_GROUP",
    "NAME_LABEL",
    "ROUTE_KINDS",
    "AllowedRoutes",
    "Backend",
    "BackendNamed",
    "Change",
    "ContainerPort",
    "Controller",
    "Everything",
    "ExternalWorkload",
    "ExternalsMatching",
    "Gateway",
    "GatewayNamed",
    "GrantFrom",
    "GrantTo",
    "GrpcMatch",
    "GrpcRule",
    "HttpProbe",
    "Listener",
    "LiveWorld",
    "Manifest",
    "Namespace",
    "ObjectId",
    "Operator",
    "Owner",
    "ParentRef",
    "PathMatch",
    "PathType",
    "Pod",
    "PodNamed",
    "PodsAcross",
    "PodsMatching",
    "PodsOfAccount",
    "PodsOfService",
    "PodsOwnedBy",
    "ReferenceGrant",
    "Requirement",
    "Route",
    "RouteBackend",
    "RouteMatch",
    "RouteNamed",
    "RouteRule",
    "RoutesFrom",
    "Secret",
    "Selector",
    "Service",
    "ServiceAccount",
    "ServicePort",
    "Target",
    "ValueMatch",
    "Workload",
    "World",
    "WorldObject",
    "account_of",
    "dns_label_problem",
    "dns_subdomain_problem",
    "interpret",
    "is_added_label",
    "label_key_problem",
    "label_value_problem",
    "matches_pattern",
    "moment",
    "object_id",
    "pattern_problem",
    "service_account_id",
    "spans_first_match",
    "spiffe_problem",
    "trust_domain_problem",
    "uses",
    "uses_kind",
]
