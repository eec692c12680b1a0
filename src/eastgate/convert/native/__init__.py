"""Enforcement of GEP-3779 by the proxies of an installed mesh, through equivalent policies of Istio or Linkerd.

Pure functions plan the objects that should exist, and prove them before they are written. `NativeWriter` writes them.
"""

from eastgate.convert.native.model import (
    ForeseenOutcome,
    NativeDifference,
    NativeLoss,
    NativeMesh,
    NativeOutcome,
    NativePlan,
    NativeState,
    Unwritable,
)
from eastgate.convert.native.planning import foresee, wanted
from eastgate.convert.native.reconciling import NativeStep, NativeStepKind, steps
from eastgate.convert.native.situation import control_plane_of, has_proxy, is_copy, is_serving, is_source
from eastgate.convert.native.writer import NativeWriter, WriteFailure

__all__ = [
    "ForeseenOutcome",
    "NativeDifference",
    "NativeLoss",
    "NativeMesh",
    "NativeOutcome",
    "NativePlan",
    "NativeState",
    "NativeStep",
    "NativeStepKind",
    "NativeWriter",
    "Unwritable",
    "WriteFailure",
    "control_plane_of",
    "foresee",
    "has_proxy",
    "is_copy",
    "is_serving",
    "is_source",
    "steps",
    "wanted",
]
