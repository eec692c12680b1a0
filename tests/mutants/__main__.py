"""`make mutants`: put small errors into the code that decides, one at a time, and list those that no test notices."""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter

from tests.mutants.equivalent import read_equivalent
from tests.mutants.mutating import Mutant, mutants_of
from tests.mutants.places import SUBJECTS
from tests.mutants.running import MutantResult, run


def main() -> int:
    """Run a sample of the mutants, and print each survivor."""
    options = _options()
    subject = SUBJECTS[options.subject]
    every = [mutant for file in subject.files() for mutant in mutants_of(file)]
    equivalent = set() if options.equivalent else set(read_equivalent())
    mutants = [mutant for mutant in every if mutant.key not in equivalent and _is_asked_for(mutant, options.only)]
    chosen = random.Random(options.seed).sample(mutants, min(options.sample, len(mutants)))  # noqa: S311
    print(f"{len(chosen)} of {len(mutants)} mutants of {subject.package}", end="")
    print(f", {sum(mutant.key in equivalent for mutant in every)} more are known to be equivalent", flush=True)
    results: Counter[MutantResult] = Counter()

    def note(mutant: Mutant, result: MutantResult) -> None:
        results[result] += 1
        if result is MutantResult.SURVIVED or options.verbose:
            print(f"{result}: {mutant}", file=sys.stderr, flush=True)

    if not run(chosen, options.tests or subject.tests, note, thorough=options.thorough):
        print("the tests fail on the unchanged code", file=sys.stderr)
        return 2
    print(", ".join(f"{results[result]} {result}" for result in MutantResult), f"of {results.total()}")
    return 0


def _is_asked_for(mutant: Mutant, texts: list[str] | None) -> bool:
    return texts is None or any(text in str(mutant) for text in texts)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("subject", choices=SUBJECTS)
    parser.add_argument("--sample", type=int, default=100, metavar="N", help="number of mutants (default: 100)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random sample (default: 1)")
    parser.add_argument("--only", nargs="+", metavar="TEXT", help="only mutants with one of these texts in their line")
    parser.add_argument("--equivalent", action="store_true", help="also try mutants that are known to be equivalent")
    parser.add_argument("--tests", nargs="+", metavar="PATH", help="use these tests instead of those of the subject")
    parser.add_argument("--thorough", action="store_true", help="draw as many examples in generated tests as in CI")
    parser.add_argument("-v", "--verbose", action="store_true", help="print every mutant, not only survivors")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
