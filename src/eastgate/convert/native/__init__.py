"""GEP-3779 on the proxies of an installed mesh: the policies of Istio or Linkerd that say the same.

What should exist is planned by pure functions and proven before it is written; `NativeWriter` makes it so.
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
