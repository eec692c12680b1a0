"""One drawn gateway: a real proxy enforces it, and its answers to many requests are compared with the engine."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence

from eastgate import Authority, ManifestError, Settings
from tests.differential.gateways.asking import GatewayAsk
from tests.differential.gateways.bench import GatewayAnswer, GatewayBench
from tests.differential.gateways.judging import difference, known
from tests.differential.gateways.streams import server_names, stream_difference
from tests.differential.gateways.world import GATEWAY
from tests.differential.running import Tally
from tests.differential.world import Manifest

__all__ = ["GatewayDifference", "compare_gateway", "compare_streams", "enforced_at_gateway"]

_STREAMS = 4  # handshakes of each set
_LATE_SECONDS = 0.3  # a worker of Envoy may apply a change a moment after its main thread


class GatewayDifference(AssertionError):  # noqa: N818 - the name is clear
    """A difference between engine and gateway. The message has everything to reproduce it."""

    def __init__(
        self, manifests: Sequence[Manifest], settings: Settings, ask: GatewayAsk, answer: GatewayAnswer, problem: str
    ) -> None:
        changed = {k: v for k, v in settings.to_json().items() if v != Settings().to_json()[k]}
        super().__init__(
            f"{problem}\n  ask: {ask}\n  on the wire: {ask.to_bytes()!r}\n  settings: {json.dumps(changed)}\n"
            f"  answer: {answer}\n  manifests: {json.dumps(list(manifests), ensure_ascii=False)}"
        )


def enforced_at_gateway(bench: GatewayBench, manifests: Sequence[Manifest], settings: Settings) -> Authority | None:
    """Enforce the manifests at the gateway. Return None if Eastgate rejects them."""
    try:
        authority = bench.enforce(manifests, settings)
    except ManifestError:
        return None
    closed = [closure for closure in bench.mesh.enforcement.closed.values() if not closure.parts]
    assert not closed, f"{closed}\n  manifests: {json.dumps(list(manifests))}"
    return authority


def compare_gateway(
    bench: GatewayBench, authority: Authority, manifests: Sequence[Manifest], asks: Sequence[GatewayAsk], tally: Tally
) -> Iterator[GatewayDifference]:
    """Yield every difference, and count the results of all requests."""
    tally.sets += 1
    prepared = [bench.prepared(ask) for ask in asks]
    for ask, answer in zip(prepared, bench.attempt(prepared), strict=True):
        tally.decisions += 1
        problem = _problem(bench, authority, ask, answer)
        if problem is not None:
            time.sleep(_LATE_SECONDS)
            (again,) = bench.attempt([ask])
            if _problem(bench, authority, ask, again) is None:
                tally.late.append(f"{problem}: {ask}, {answer}")
            else:
                yield GatewayDifference(manifests, authority.settings, ask, again, problem)
        expected = known(ask, answer)
        tally.kinds[expected.name if expected is not None else _outcome(answer)] += 1
        tally.kinds[ask.http.version] += 1
        tally.kinds["HTTPS" if ask.is_tls else "HTTP"] += 1
        if answer.logged is not None and answer.logged.asked:
            tally.kinds["asked"] += 1


def compare_streams(
    bench: GatewayBench, authority: Authority, manifests: Sequence[Manifest], seed: int, tally: Tally
) -> Iterator[AssertionError]:
    """Yield every difference about TLS passthrough."""
    names = server_names(manifests, seed, _STREAMS)
    policies = [each for each in manifests if each["kind"].endswith("AccessPolicy")]
    for (port, name), reached in zip(names, bench.pass_through(names), strict=True):
        tally.decisions += 1
        tally.kinds["passed through" if reached is not None else "not passed through"] += 1
        problem = stream_difference(authority, policies, port, name, reached)
        if problem is not None:
            time.sleep(_LATE_SECONDS)
            (again,) = bench.pass_through([(port, name)])
            if stream_difference(authority, policies, port, name, again) is None:
                tally.late.append(problem)
            else:
                yield AssertionError(f"{problem}\n  manifests: {json.dumps(list(manifests), ensure_ascii=False)}")


def _problem(bench: GatewayBench, authority: Authority, ask: GatewayAsk, answer: GatewayAnswer) -> str | None:
    named = answer.logged.destination if answer.logged is not None else None
    destination = bench.mesh.enforcement.plans.find_destination(GATEWAY, ask.port, named or "")
    return difference(authority, ask, answer, destination)


def _outcome(answer: GatewayAnswer) -> str:
    if answer.logged is None:
        return "closed"
    return "allowed" if answer.server is not None else answer.logged.decision.partition(":")[0]
