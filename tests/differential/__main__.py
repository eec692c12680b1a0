"""Look for differences between engine and Envoy for as long as somebody wants: `make fuzz`."""

from __future__ import annotations

import argparse
import os
import sys
import time

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from eastgate import Settings
from tests.differential.bench import Bench
from tests.differential.corpus import asks
from tests.differential.policies import chosen_settings, policy_sets
from tests.differential.running import Difference, Tally, compare, enforced
from tests.differential.world import Manifest

_SETS_AT_ONCE = 40


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--callers", type=int, default=6, help="of each policy set")
    parser.add_argument("--requests", type=int, default=4, help="of each caller to each port")
    chosen = parser.parse_args()
    tally, began = Tally(), time.monotonic()
    print(f"seed {chosen.seed}")
    with Bench(f"fuzz-{os.getpid()}") as bench:
        number = chosen.seed
        while time.monotonic() - began < chosen.seconds:
            try:
                _some(bench, number, tally, chosen)
            except Difference as found:
                print(f"\nDIFFERENCE (seed {number})\n{found}", file=sys.stderr)
                return 1
            number += 1
            elapsed = time.monotonic() - began
            print(f"{elapsed:6.0f} s  {tally.decisions / elapsed:5.0f} a second  {tally}", flush=True)
    return 0


def _some(bench: Bench, number: int, tally: Tally, chosen: argparse.Namespace) -> None:
    shrinking: list[Difference] = []

    @seed(number)
    @settings(
        max_examples=_SETS_AT_ONCE,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    @given(policy_sets(), chosen_settings(), st.integers(0, 2**32))
    def run(policies: list[Manifest], used: Settings, sample: int) -> None:
        authority = enforced(bench, policies, used)
        if authority is not None:
            chosen_asks = list(asks(sample, chosen.callers, chosen.requests))
            for found in compare(bench, authority, policies, chosen_asks, tally):
                if not shrinking:
                    print(f"found a difference, looking for a smaller one: {str(found)[:1500]}", flush=True)
                shrinking.append(found)
                raise found

    run()


if __name__ == "__main__":
    sys.exit(main())
