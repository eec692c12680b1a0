"""The engine: a world and policies in, decisions out.

Workloads that the same policies target form a class and share one program. Programs are compiled when they are
first needed, or all at once by `compile_all`; a change forgets only the programs of the workloads that it touches.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from eastgate.engine.attachment import Attachments, Targeting
from eastgate.engine.compiled import Decide, Program, Verdict, compile_layers
from eastgate.policy import Attachment, Layer, PolicyRef, Request
from eastgate.world import Change, World

__all__ = ["Engine"]

P = TypeVar("P", bound=Targeting)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Without cyclic garbage collection, which would look again and again at tables that have come to stay."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Engine(Generic[P]):
    """Decides. `assemble` is the dialects' part: from the policies on a workload to its layers."""

    def __init__(
        self,
        world: World,
        policies: Iterable[P],
        assemble: Callable[[Sequence[Attachment[P]]], Sequence[Layer]],
    ) -> None:
        self.world = world
        self._assemble = assemble
        with _no_collection():
            self._attachments: Attachments[P] = Attachments(world, policies)
        self._programs: dict[str, Program] = {}
        self._decides: dict[str, Decide] = {}  # what a program decides with, one step nearer
        self._classes: WeakValueDictionary[tuple[object, ...], Program] = WeakValueDictionary()

    def decide(self, workload: str, request: Request) -> Verdict:
        """Whether a request to the workload of this key is allowed: odd is yes. `outcome` says why."""
        try:
            decide = self._decides[workload]
        except KeyError:
            decide = self.program(workload).decide
        return decide(request)

    def program(self, workload: str) -> Program:
        """What decides for a workload. Raises KeyError where there is no such workload."""
        program = self._programs.get(workload)
        if program is None:
            attached = self._attachments.of(self.world.workloads[workload])
            same = tuple(part for one in attached for part in (one.policy, one.service))
            program = self._classes.get(same)
            if program is None:
                program = self._classes[same] = compile_layers(self._assemble(attached))
            self._programs[workload] = program
            self._decides[workload] = program.decide
        return program

    def compile_all(self) -> int:
        """Compile the programs of all workloads now; tells how many classes they form."""
        with _no_collection():
            for workload in self.world.workloads:
                self.program(workload)
        return len(self._classes)

    @property
    def policies(self) -> Sequence[P]:
        """Every policy, in the order of their names."""
        return sorted(self._attachments.policies.values(), key=lambda policy: str(policy.ref))

    def attached(self, workload: str) -> tuple[Attachment[P], ...]:
        """The policies that target a workload, in the order of their names."""
        return self._attachments.of(self.world.workloads[workload])

    def put_policy(self, policy: P) -> frozenset[str]:
        """Add or replace a policy; tells which workloads it touches."""
        return self._forget(self._attachments.put(policy))

    def remove_policy(self, ref: PolicyRef) -> frozenset[str]:
        """Remove a policy, if it is there; tells which workloads it touched."""
        return self._forget(self._attachments.remove(ref))

    def world_changed(self, change: Change) -> frozenset[str]:
        """The world has changed under the engine; tells which workloads that touches."""
        return self._forget(set(change.workloads))

    def _forget(self, touched: set[str]) -> frozenset[str]:
        for workload in touched:
            self._programs.pop(workload, None)
            self._decides.pop(workload, None)
        return frozenset(touched)
