"""Gateways of our class: the objects that run them, and what their status and that of their routes says.

Start reading at `reconciling.py`; everything that it writes is worked out from data in the other modules.
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
