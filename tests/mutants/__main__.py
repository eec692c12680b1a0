"""`make mutants`: put small errors into the code that decides, one at a time, and list those that no test notices."""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from tests.mutants.mutating import Mutant, mutants_of
from tests.mutants.places import ROOT, SUBJECTS, Subject
from tests.mutants.running import Fate, fate_of, preload


def main() -> int:
    """Run a sample of the mutants; tells on each that survives."""
    options = _options()
    preload()
    fates: Counter[Fate] = Counter()
    for name in options.subjects or SUBJECTS:
        subject = SUBJECTS[name]
        if options.tests:
            subject = replace(subject, tests=tuple(options.tests))
        if not options.unchecked and fate_of(None, subject.tests) is not Fate.SURVIVED:
            print(f"{name}: the tests fail on the code as it is", file=sys.stderr)
            return 2
        mutants = [mutant for mutant in _mutants(subject) if options.only in str(mutant)]
        chosen = random.Random(options.seed).sample(mutants, min(options.sample, len(mutants)))  # noqa: S311
        print(f"{name}: {len(chosen)} of {len(mutants)} mutants of {subject.package}", flush=True)
        fates += _try(chosen, subject, options.log)
    print(", ".join(f"{fates[fate]} {fate}" for fate in Fate), f"of {fates.total()}")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument(
        "subjects", nargs="*", choices=[*SUBJECTS, []], help=f"of {', '.join(SUBJECTS)}; all by default"
    )
    parser.add_argument("--sample", type=int, default=100, metavar="N", help="how many mutants of each (100)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (1)")
    parser.add_argument("--only", default="", metavar="TEXT", help="those whose line of the list has this text in it")
    parser.add_argument("--tests", nargs="+", metavar="PATH", help="other tests than those of the subject")
    parser.add_argument("--unchecked", action="store_true", help="do not see first whether the tests pass as it is")
    parser.add_argument("--log", type=Path, metavar="FILE", help="where the fate of each is written")
    return parser.parse_args()


def _mutants(subject: Subject) -> list[Mutant]:
    found = []
    for module in subject.modules():
        path = ROOT / "src" / module.replace(".", "/")
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        found += mutants_of(module, file.read_text(encoding="utf-8"))
    return found


def _try(mutants: list[Mutant], subject: Subject, log: Path | None) -> Counter[Fate]:
    fates: Counter[Fate] = Counter()
    for mutant in mutants:
        start = time.monotonic()
        fate = fate_of(mutant, subject.tests)
        fates[fate] += 1
        if fate is Fate.SURVIVED:
            print(f"  survived: {mutant}", flush=True)
        if log is not None:
            with log.open("a", encoding="utf-8") as lines:
                lines.write(f"{fate}\t{time.monotonic() - start:.1f}\t{mutant}\n")
    return fates


if __name__ == "__main__":
    sys.exit(main())
