"""Layers to what an Envoy beside a workload does. Knows no protobuf: `eastgate.xds` writes the plan down for Envoy."""

from eastgate.targets.envoy.callers import AccountOf, ByCaller, Caller, Known, Nobody, OtherAccount, Stranger
from eastgate.targets.envoy.codes import Inexpressible
from eastgate.targets.envoy.decisions import Choice, Node, Verdict, verdicts
from eastgate.targets.envoy.flow import ENCODED_SLASH
from eastgate.targets.envoy.plan import HttpFilter, PortPlan, plan_port

__all__ = [
    "ENCODED_SLASH",
    "AccountOf",
    "ByCaller",
    "Caller",
    "Choice",
    "HttpFilter",
    "Inexpressible",
    "Known",
    "Nobody",
    "Node",
    "OtherAccount",
    "PortPlan",
    "Stranger",
    "Verdict",
    "plan_port",
    "verdicts",
]
