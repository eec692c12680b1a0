"""Kuadrant's AuthPolicy: requests to a route or a Gateway that must pass an auth scheme."""

from __future__ import annotations

from dataclasses import replace

from eastgate.dialects.base import Dialect, Kind, reader
from eastgate.dialects.kuadrant import meaning, shapes, validation
from eastgate.dialects.kuadrant.assemble import layers
from eastgate.dialects.kuadrant.examine import available, examine
from eastgate.dialects.kuadrant.model import Policy

__all__ = ["DIALECT", "GROUP", "Policy"]

GROUP = "apim.kuadrant.io"

_SHAPE = replace(shapes.AUTH_POLICY, rules=(*shapes.AUTH_POLICY.rules, validation.own_namespace))

DIALECT: Dialect[Policy] = Dialect(
    name="Kuadrant",
    model=Policy,
    kinds=(Kind(GROUP, "v1alpha1", "AuthPolicy", reader(_SHAPE, lambda settings: settings, meaning.auth_policy)),),
    layers=lambda attached, _scene: layers(attached),
    examine=examine,
    status=lambda policy, policies, settings, world: [available(policy, policies, settings, world)],
    bystanders=frozenset({(GROUP, "RateLimitPolicy")}),
)
