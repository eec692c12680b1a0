"""The decisions of an Envoy for the layers of a workload, without protobuf: `envoy.config` writes them for Envoy."""

from eastgate.envoy.plan.callers import ByCaller
from eastgate.envoy.plan.codes import Inexpressible
from eastgate.envoy.plan.combining import joint_of
from eastgate.envoy.plan.decisions import Node, ProxyVerdict
from eastgate.envoy.plan.fields import UNCLEAR, RequestField
from eastgate.envoy.plan.flow import BAD_HOST, ENCODED_CHARACTER, ENCODED_SLASH
from eastgate.envoy.plan.ports import PortPlan, Requests, plan_port

__all__ = [
    "BAD_HOST",
    "ENCODED_CHARACTER",
    "ENCODED_SLASH",
    "UNCLEAR",
    "ByCaller",
    "Inexpressible",
    "Node",
    "PortPlan",
    "ProxyVerdict",
    "RequestField",
    "Requests",
    "joint_of",
    "plan_port",
]
