"""GEP-3779 on the proxies of an installed mesh: the policies of Istio or Linkerd that say the same.

What should exist is planned by pure functions and proven before it is written; `NativeWriter` makes it so.
"""

from eastgate.native.model import (
    NativeDifference,
    NativeLoss,
    NativeMesh,
    NativeOutcome,
    NativePlan,
    NativeState,
    Unwritable,
)
from eastgate.native.planning import wanted
from eastgate.native.reconciling import NativeStep, NativeStepKind, steps
from eastgate.native.writer import NativeWriter, WriteFailure

__all__ = [
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
    "steps",
    "wanted",
]
