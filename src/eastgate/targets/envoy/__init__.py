"""Layers to what an Envoy beside a workload does. Knows no protobuf: `eastgate.xds` writes the plan down for Envoy."""

from eastgate.targets.envoy.callers import AccountOf, ByCaller, Caller, Known, Nobody, OtherAccount, Stranger
from eastgate.targets.envoy.codes import Inexpressible
from eastgate.targets.envoy.decisions import Choice, Node, Verdict, verdicts
from eastgate.targets.envoy.exactness import joint_of
from eastgate.targets.envoy.fields import UNCLEAR, Field
from eastgate.targets.envoy.flow import BAD_HOST, ENCODED_CHARACTER, ENCODED_SLASH
from eastgate.targets.envoy.plan import PortPlan, Requests, plan_port

__all__ = [
    "BAD_HOST",
    "ENCODED_CHARACTER",
    "ENCODED_SLASH",
    "UNCLEAR",
    "AccountOf",
    "ByCaller",
    "Caller",
    "Choice",
    "Field",
    "Inexpressible",
    "Known",
    "Nobody",
    "Node",
    "OtherAccount",
    "PortPlan",
    "Requests",
    "Stranger",
    "Verdict",
    "joint_of",
    "plan_port",
    "verdicts",
]
