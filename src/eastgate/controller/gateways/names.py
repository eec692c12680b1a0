"""Names, labels and ports of what is made for a Gateway."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

from eastgate.cluster import GATEWAY_GROUP
from eastgate.cluster.gateways import GATEWAY_NAME_LABEL
from eastgate.cluster.proxies import GATEWAY_LABEL

__all__ = [
    "APPLIED_ANNOTATION",
    "CONTROLLER_NAME",
    "GATEWAY_LABEL",
    "MANAGED_BY_LABEL",
    "MANAGER",
    "READINESS_PORT",
    "RESERVED_PORTS",
    "STATUS_MANAGER",
    "is_reserved",
    "labels_of",
    "object_name",
    "owner_reference",
    "selector_of",
]

CONTROLLER_NAME: Final = "eastgate.dev/gateway-controller"
MANAGER: Final = "eastgate"
STATUS_MANAGER: Final = "eastgate-status"
MANAGED_BY_LABEL: Final = "app.kubernetes.io/managed-by"
APPLIED_ANNOTATION: Final = "eastgate.dev/applied"  # a digest of what was applied last
READINESS_PORT: Final = 15021
RESERVED_PORTS: Final = frozenset({15000, 15001, 15006, READINESS_PORT})  # of the proxy in the pod itself

_LONGEST: Final = 63
_DIGITS: Final = 10
_SUFFIX: Final = "-eastgate"
_OWN_PREFIX: Final = "eastgate.dev/"
_OWN_KEYS: Final = frozenset({MANAGED_BY_LABEL, "app.kubernetes.io/name", GATEWAY_NAME_LABEL})


def object_name(gateway: str) -> str:
    """Return the name of the Deployment, the Service and the like of a Gateway, which fits all of them."""
    longest = _LONGEST - len(_SUFFIX)
    fits = len(gateway) <= longest and "." not in gateway and gateway[0].isalpha()
    return (gateway if fits else _shortened(gateway, longest)) + _SUFFIX


def selector_of(gateway: str) -> dict[str, str]:
    """Return the labels by which the pods of a Gateway are selected. They never change."""
    value = gateway if len(gateway) <= _LONGEST else _shortened(gateway, _LONGEST)
    return {GATEWAY_LABEL: value, GATEWAY_NAME_LABEL: value}


def labels_of(gateway: str) -> dict[str, str]:
    """Return the labels of everything that is made for a Gateway."""
    return selector_of(gateway) | {"app.kubernetes.io/name": "eastgate-gateway", MANAGED_BY_LABEL: "eastgate"}


def is_reserved(key: str) -> bool:
    """Tell whether a label or an annotation is ours to set."""
    return key.startswith(_OWN_PREFIX) or key in _OWN_KEYS


def owner_reference(gateway: Mapping[str, Any]) -> dict[str, Any]:
    """Return the reference by which an object belongs to a Gateway, and goes with it."""
    return {
        "apiVersion": f"{GATEWAY_GROUP}/v1",
        "kind": "Gateway",
        "name": gateway["metadata"]["name"],
        "uid": gateway["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _shortened(name: str, longest: int) -> str:
    """Return a DNS label for a name that is none, or too long: its beginning, and a digest of it."""
    digest = sha256(name.encode()).hexdigest()[:_DIGITS]
    beginning = name.replace(".", "-")[: longest - _DIGITS - len("g--")].rstrip("-")
    return f"g-{beginning}-{digest}"
