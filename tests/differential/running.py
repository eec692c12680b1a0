"""One policy set: real proxies enforce it, and their answers to many requests are compared with the engine."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from eastgate import Settings
from eastgate.authority.authority import Authority
from eastgate.authority.reading import ManifestError
from tests.differential.asking import Ask
from tests.differential.bench import Answer, Bench
from tests.differential.judging import difference, known
from tests.differential.world import Manifest

__all__ = ["Difference", "Tally", "compare", "enforced"]

_LATE_SECONDS = 0.2  # a worker of Envoy may apply a listener a moment after its main thread


class Difference(AssertionError):  # noqa: N818 - the name is clear
    """A difference between engine and proxy. The message has everything to reproduce it."""

    def __init__(
        self, policies: Sequence[Manifest], settings: Settings, ask: Ask, answer: Answer, problem: str
    ) -> None:
        changed = {k: v for k, v in settings.to_json().items() if v != Settings().to_json()[k]}
        wire = "raw bytes" if ask.http is None else ask.http.to_bytes().decode("utf-8", "surrogateescape")
        logged = answer.request or answer.connection
        super().__init__(
            f"{problem}\n  ask: {ask}\n  on the wire: {wire!r}\n  settings: {json.dumps(changed)}\n"
            f"  the proxy's log: {logged}\n  policies: {json.dumps(list(policies), ensure_ascii=False)}"
        )


@dataclass(slots=True)
class Tally:
    """The counts of all decisions, and of the intended differences."""

    decisions: int = 0
    sets: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    late: list[str] = field(default_factory=list)  # differences that soon disappeared

    def __str__(self) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.kinds.items()))
        return f"{self.decisions} decisions on {self.sets} policy sets ({kinds}), {len(self.late)} late"


def enforced(bench: Bench, policies: Sequence[Manifest], settings: Settings) -> Authority | None:
    """Enforce the policies. Return None if Eastgate rejects the set."""
    try:
        authority = bench.enforce(policies, settings)
    except ManifestError:
        return None
    refused = [one for one in bench.rejected if " is closed: " not in one.message]
    if refused:
        raise AssertionError(f"a proxy rejected {refused[0]}\n  policies: {json.dumps(list(policies))}")
    return authority


def compare(
    bench: Bench, authority: Authority, policies: Sequence[Manifest], asks: Sequence[Ask], tally: Tally
) -> Iterator[Difference]:
    """Yield every difference, and count the results of all requests."""
    tally.sets += 1
    asks = [bench.located(ask) for ask in asks]
    for ask, answer in zip(asks, bench.ask(asks), strict=True):
        decision = authority.decide(ask.question())
        tally.decisions += 1
        problem = difference(ask, decision, answer)
        if problem is not None:
            time.sleep(_LATE_SECONDS)
            (again,) = bench.ask([ask])
            if difference(ask, decision, again) is None:
                tally.late.append(f"{problem}: {ask}, {answer.connection}, {answer.request}")
            else:
                yield Difference(policies, authority.settings, ask, again, problem)
        expected = known(ask, answer)
        outcome = "allowed" if answer.allowed else "closed" if answer.request is None else str(answer.status)
        tally.kinds[expected.name if expected is not None else outcome] += 1
