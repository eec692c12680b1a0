"""What a dialect's checks may ask, answered by the engine."""

from __future__ import annotations

from collections.abc import Sequence

from eastgate.authority.questions import Question
from eastgate.dialects.linting import Group, GroupDecider
from eastgate.ir import Chain, Layer, Predicate, Request
from eastgate.ir.symbolic.witnesses import GaveUp, witness
from eastgate.reports.lint.inventory import PolicyInventory
from eastgate.reports.lint.possible import can_allow, chains_for
from eastgate.reports.lint.samples import sources
from eastgate.reports.lint.solving import is_possible
from eastgate.settings import Settings


class CheckContext(PolicyInventory):
    """The inventory of the general checks, and answers to what a `Context` can be asked."""

    def under(self, group: Group, settings: Settings) -> GroupDecider:
        """Assemble a group under other settings."""
        program = self.assembled(group, group.attached, settings)
        return GroupDecider(program.layers, lambda request: bool(program.decide(request) & 1))

    def is_possible(self, predicate: Predicate) -> bool:
        """Return whether any request meets a predicate; True where that is too hard to find out."""
        return is_possible(predicate)

    def witness(self, wanted: Predicate, avoided: Sequence[Predicate]) -> Request | None:
        """Find a request that meets a predicate and none of the others; None where there is none, or none is found."""
        try:
            return witness(wanted, avoided)
        except GaveUp:
            return None

    def chains_for(self, layer: Layer, request: Request) -> list[Chain]:
        """Return the chains that a layer may choose for a request of which only a part is known."""
        return chains_for(layer, request)

    def can_allow(self, layer: Layer, request: Request) -> bool:
        """Return whether a layer may allow a request of which only a part is known."""
        return can_allow(layer, request)

    def requests(self, question: Question) -> list[Request]:
        """Return every request that a question stands for."""
        return self.authority.requests(question)

    def sources(self, group: Group) -> list[str]:
        """Return callers that are likely to be treated differently, as sources of questions."""
        return sources(group, self)
