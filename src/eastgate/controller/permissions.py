"""The permissions of the controller, as RBAC rules: made from the lists that the code itself uses."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from eastgate import dialects
from eastgate.authority.sources.needs import BY_NAME, WatchedKind, watched_kinds
from eastgate.cluster.gateways import GATEWAY_GROUP, ROUTE_KINDS
from eastgate.controller.admission.configuration import MUTATING, VALIDATING, converted_definitions
from eastgate.controller.certificates.ca_secret import CA_NAME
from eastgate.controller.gateways.objects import OBJECT_RESOURCES
from eastgate.controller.replica import ALSO_FOLLOWED
from eastgate.convert.native import NativeMesh
from eastgate.convert.native.writer import GROUPS
from eastgate.convert.native.writer import RESOURCES as NATIVE_RESOURCES
from eastgate.reports.crds.definitions import served
from eastgate.reports.invariants.objects import GROUP as INVARIANT_GROUP
from eastgate.reports.invariants.shapes import KINDS as INVARIANT_KINDS

Rule: TypeAlias = dict[str, list[str]]

_LEASE: Final = "eastgate"
_ADMISSION: Final = "admissionregistration.k8s.io"
_EXTENSIONS: Final = "apiextensions.k8s.io"
_LEGACY_GROUPS: Final = frozenset({"extensions"})  # in files only: no supported API server has them
_IRREGULAR_PLURALS: Final[Mapping[tuple[str, str], str]] = {
    ("consul.hashicorp.com", "ServiceIntentions"): "serviceintentions",
    ("k8s.cni.cncf.io", "MultiNetworkPolicy"): "multi-networkpolicies",
    ("k8s.otterize.com", "ClientIntents"): "clientintents",
    ("kubeovn.io", "SecurityGroup"): "security-groups",
}

FINALIZER_RULES: Final[list[Rule]] = [
    {"apiGroups": [GATEWAY_GROUP], "resources": ["gateways/finalizers"], "verbs": ["update"]}
]
"""For clusters that require it to set an owner (`OwnerReferencesPermissionEnforcement`)."""


def plural_of(group: str, kind: str) -> str:
    """Return the plural name of a kind."""
    if (group, kind) in _IRREGULAR_PLURALS:
        return _IRREGULAR_PLURALS[group, kind]
    lower = kind.lower()
    if lower.endswith("y") and lower[-2] not in "aeiou":
        return f"{lower[:-1]}ies"
    return f"{lower}es" if lower.endswith(("s", "x", "ch")) else f"{lower}s"


def base_rules() -> list[Rule]:
    """Return the rules that every controller needs in all namespaces.

    It reads each kind that can change a decision. It writes status and events, and reviews tokens of proxies. It keeps
    a ConfigMap with its CA in namespaces with proxies.
    """
    return [
        *_rules(((kind.group, plural_of(kind.group, kind.kind)) for kind in _followed()), ["list", "watch"]),
        _rule(_EXTENSIONS, ["customresourcedefinitions"], ["list", "watch"]),
        _rule("", ["configmaps"], ["get", "list", "watch"]),
        _rule("", ["configmaps"], ["create", "patch"], [CA_NAME]),
        *_rules(_policies_with_status(), ["get"]),
        *_rules(_statuses(), ["patch"]),
        _rule("events.k8s.io", ["events"], ["create", "get", "update"]),
        _rule("authentication.k8s.io", ["tokenreviews"], ["create"]),
    ]


def webhook_rules() -> list[Rule]:
    """Return the rules for webhook certificates: Eastgate's configurations, and definitions with several versions."""
    return [
        _rule(_ADMISSION, ["validatingwebhookconfigurations"], ["get", "update"], [VALIDATING]),
        _rule(_ADMISSION, ["mutatingwebhookconfigurations"], ["get", "update"], [MUTATING]),
        _rule(_EXTENSIONS, ["customresourcedefinitions"], ["get", "update"], converted_definitions()),
    ]


def gateway_rules() -> list[Rule]:
    """Return the rules for Gateways: their objects, and the status of Gateways and routes."""
    followed = {(kind.group, plural_of(kind.group, kind.kind)) for kind in _followed()}
    objects = [(resource.group, resource.plural) for resource in OBJECT_RESOURCES]
    kinds = ("GatewayClass", "Gateway", *ROUTE_KINDS)
    return [
        *_rules(objects, ["create", "delete", "get", "patch"]),
        *_rules((each for each in objects if each not in followed), ["list"]),
        _rule(GATEWAY_GROUP, [f"{plural_of(GATEWAY_GROUP, kind)}/status" for kind in kinds], ["patch"]),
    ]


def gateway_class_rules() -> list[Rule]:
    """Return the rules to create the GatewayClass, if Gateway API is installed after the controller."""
    return [_rule(GATEWAY_GROUP, ["gatewayclasses"], ["create"])]


def shared_status_rules() -> list[Rule]:
    """Return the rules to write shared statuses, and to detect other controllers that write them."""
    kinds = dialects.registered().policies.values()
    shared = {(kind.group, plural_of(kind.group, kind.kind)) for kind in kinds if kind.status_lease is not None}
    return [
        _rule("coordination.k8s.io", ["leases"], ["list"]),
        *_rules(shared, ["get"]),
        *_rules(((group, f"{plural}/status") for group, plural in shared), ["patch"]),
    ]


class UserRole(enum.StrEnum):
    """The Kubernetes roles for users of a namespace; each includes the roles before it."""

    VIEW = "view"
    EDIT = "edit"
    ADMIN = "admin"


def user_rules(role: UserRole) -> list[Rule]:
    """Return the rules that a role adds for the kinds that only Eastgate defines.

    A user who may edit NetworkPolicies may edit policies. An Invariant limits policies, so only admins of the namespace
    may edit it. These roles show cluster-scoped kinds, and do not change them.
    """
    definitions = served()
    own = [each for each in definitions if not each.cluster_scoped]
    match role:
        case UserRole.VIEW:
            return _rules(((each.group, each.resource.plural) for each in definitions), ["get", "list", "watch"])
        case UserRole.EDIT:
            chosen = [each for each in own if each.kind not in INVARIANT_KINDS]
        case UserRole.ADMIN:
            chosen = [each for each in own if each.kind in INVARIANT_KINDS]
    verbs = ["create", "delete", "deletecollection", "patch", "update"]
    return _rules(((each.group, each.resource.plural) for each in chosen), verbs)


def native_rules(mesh: NativeMesh) -> list[Rule]:
    """Return the rules for policies of an installed mesh. Written policies of the other mesh are deleted."""
    own = [(each.group, each.plural) for each in NATIVE_RESOURCES if each.group == GROUPS[mesh]]
    others = [(each.group, each.plural) for each in NATIVE_RESOURCES if each.group != GROUPS[mesh]]
    return [*_rules(own, ["create", "delete", "update"]), *_rules(others, ["delete"])]


def secret_rules() -> list[Rule]:
    """Return the rules to read Secrets in any namespace. With a field selector, names may limit them."""
    return [_rule("", ["secrets"], ["list", "watch"])]


def own_rules() -> list[Rule]:
    """Return the rules in the controller's own namespace: its Lease and its CA."""
    leases, secrets = ("coordination.k8s.io", ["leases"]), ("", ["secrets"])
    return [
        _rule(*leases, ["create"]),
        _rule(*leases, ["get", "update"], [_LEASE]),
        _rule(*secrets, ["create"]),
        _rule(*secrets, ["get", "update"], [CA_NAME]),
    ]


def _followed() -> list[WatchedKind]:
    kinds = (*watched_kinds(), *ALSO_FOLLOWED)
    return [kind for kind in kinds if (kind.group, kind.kind) not in BY_NAME and kind.group not in _LEGACY_GROUPS]


def _policies_with_status() -> set[tuple[str, str]]:
    """Return the kinds of policies whose status Eastgate always writes."""
    return {
        (kind.group, plural_of(kind.group, kind.kind))
        for kind in dialects.registered().policies.values()
        if kind.status is not None and kind.status_lease is None
    }


def _statuses() -> set[tuple[str, str]]:
    invariants = {(INVARIANT_GROUP, plural_of(INVARIANT_GROUP, kind)) for kind in INVARIANT_KINDS}
    return {(group, f"{plural}/status") for group, plural in _policies_with_status() | invariants}


def _rules(resources: Iterable[tuple[str, str]], verbs: list[str]) -> list[Rule]:
    """Return one rule for each group."""
    by_group: dict[str, set[str]] = {}
    for group, resource in resources:
        by_group.setdefault(group, set()).add(resource)
    return [_rule(group, sorted(names), verbs) for group, names in sorted(by_group.items())]


def _rule(group: str, resources: list[str], verbs: list[str], names: list[str] | None = None) -> Rule:
    rule = {"apiGroups": [group], "resources": resources}
    return {**rule, **({"resourceNames": names} if names else {}), "verbs": verbs}
