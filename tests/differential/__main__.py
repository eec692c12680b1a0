"""Search for differences between engine and Envoy for a given time: `make fuzz`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from eastgate import Settings
from tests.differential.bench import Bench
from tests.differential.corpus import asks
from tests.differential.gateways import corpus as gateway_corpus
from tests.differential.gateways import drawing
from tests.differential.gateways.bench import GatewayBench
from tests.differential.gateways.running import compare_gateway, compare_streams, enforced_at_gateway
from tests.differential.policies import chosen_settings, policy_sets
from tests.differential.running import Tally, compare, enforced
from tests.differential.world import Manifest

_SETS_PER_BATCH = 40
_SLOW_SHARE = 0.003  # the share of requests whose authorizer times out
_KINDS = ("sidecars", "gateways")

Differences = Callable[[list[Manifest], Settings, int], Iterator[AssertionError]]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--callers", type=int, default=6, help="of each policy set")
    parser.add_argument("--requests", type=int, default=4, help="of each caller to each port")
    parser.add_argument("--only", choices=_KINDS, help="proxies of one kind; else they take turns")
    chosen = parser.parse_args()
    kinds = [chosen.only] if chosen.only is not None else list(_KINDS)
    tallies, began = {kind: Tally() for kind in kinds}, time.monotonic()
    print(f"seed {chosen.seed}")
    with ExitStack() as stack:
        runs = {kind: _START[kind](stack, tallies[kind], chosen) for kind in kinds}
        number = chosen.seed
        while time.monotonic() - began < chosen.seconds:
            for kind in kinds:
                before = time.monotonic()
                try:
                    _try_some(number, *runs[kind])
                except AssertionError as found:
                    print(f"\nDIFFERENCE (seed {number}, {kind})\n{found}", file=sys.stderr)
                    return 1
                elapsed, now = time.monotonic() - began, time.monotonic() - before
                print(f"{elapsed:6.0f} s  {kind}, {now:.0f} s for the last: {tallies[kind]}", flush=True)
            number += 1
    return 0


def _try_some(
    number: int,
    drawn: st.SearchStrategy[list[Manifest]],
    drawn_settings: st.SearchStrategy[Settings],
    differences: Differences,
) -> None:
    shrinking: list[AssertionError] = []

    @seed(number)
    @settings(
        max_examples=_SETS_PER_BATCH,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    @given(drawn, drawn_settings, st.integers(0, 2**32))
    def run(manifests: list[Manifest], used: Settings, sample: int) -> None:
        for found in differences(manifests, used, sample):
            if not shrinking:
                print(f"found a difference, looking for a smaller one: {str(found)[:1500]}", flush=True)
            shrinking.append(found)
            raise found

    run()


Run = tuple[st.SearchStrategy[list[Manifest]], st.SearchStrategy[Settings], Differences]


def _start_sidecars(stack: ExitStack, tally: Tally, chosen: argparse.Namespace) -> Run:
    bench = stack.enter_context(Bench(f"fuzz-{os.getpid()}"))

    def differences(policies: list[Manifest], used: Settings, sample: int) -> Iterator[AssertionError]:
        authority = enforced(bench, policies, used)
        if authority is not None:
            drawn = list(asks(sample, chosen.callers, chosen.requests))
            yield from compare(bench, authority, policies, drawn, tally)

    return policy_sets(), chosen_settings(), differences


def _start_gateways(stack: ExitStack, tally: Tally, chosen: argparse.Namespace) -> Run:
    bench = stack.enter_context(GatewayBench(f"fuzz-gateways-{os.getpid()}"))

    def differences(manifests: list[Manifest], used: Settings, sample: int) -> Iterator[AssertionError]:
        authority = enforced_at_gateway(bench, manifests, used)
        if authority is not None:
            drawn = list(gateway_corpus.asks(manifests, sample, chosen.callers, chosen.requests, slow=_SLOW_SHARE))
            yield from compare_gateway(bench, authority, manifests, drawn, tally)
            yield from compare_streams(bench, authority, manifests, sample, tally)

    return drawing.worlds(), drawing.chosen_settings(), differences


_START: dict[str, Callable[[ExitStack, Tally, argparse.Namespace], Run]] = {
    "sidecars": _start_sidecars,
    "gateways": _start_gateways,
}

if __name__ == "__main__":
    sys.exit(main())
