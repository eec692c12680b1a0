"""Gateways of Eastgate's class: the objects that run them, and the status of Gateways and routes.

Start reading at `reconciling.py`. The other modules compute everything that it writes, from data.
"""

from eastgate.controller.gateways.parameters import GatewayParameters
from eastgate.controller.gateways.pods import CONTROLLER_NAME, ProxySetup
from eastgate.controller.gateways.reconciling import GatewayReconciler, GatewayView, ReconcileResult
from eastgate.controller.gateways.status import GatewayProgress

__all__ = [
    "CONTROLLER_NAME",
    "GatewayParameters",
    "GatewayProgress",
    "GatewayReconciler",
    "GatewayView",
    "ProxySetup",
    "ReconcileResult",
]
