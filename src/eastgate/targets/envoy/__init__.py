"""Layers to what an Envoy beside a workload does. Knows no protobuf: `eastgate.xds` writes the plan down for Envoy."""

from eastgate.targets.envoy.callers import ByCaller
from eastgate.targets.envoy.codes import Inexpressible
from eastgate.targets.envoy.decisions import Node, Verdict
from eastgate.targets.envoy.exactness import joint_of
from eastgate.targets.envoy.fields import UNCLEAR, Field
from eastgate.targets.envoy.flow import BAD_HOST, ENCODED_CHARACTER, ENCODED_SLASH
from eastgate.targets.envoy.plan import PortPlan, Requests, plan_port

__all__ = [
    "BAD_HOST",
    "ENCODED_CHARACTER",
    "ENCODED_SLASH",
    "UNCLEAR",
    "ByCaller",
    "Field",
    "Inexpressible",
    "Node",
    "PortPlan",
    "Requests",
    "Verdict",
    "joint_of",
    "plan_port",
]
