"""Names of environments: short, unique in a folder, and independent of the location of the repository."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import Final

from eastgate.basics.regexes import regex

_GENERIC: Final = regex(
    r"(?i)base|charts?|clusters?|deploy(?:ments?)?|env(?:s|ironments?)?|flux-system|gitops|helm(?:-charts?)?|k8s"
    r"|kubernetes(?:-manifests)?|kustom(?:ize|izations?)|manifests?|overlays?|src|stages?|yamls?"
)
_ROOT = "root"


def is_descriptive(path: str) -> bool:
    """Return whether the last folder of a path describes its purpose."""
    last = os.path.basename(os.path.normpath(path))
    return last not in ("", os.curdir, os.pardir) and _GENERIC.fullmatch(last) is None


def names(places: Sequence[tuple[str, str]]) -> list[str]:
    """Return a unique name for each place: a path relative to the root, and a name from another source if there is one.

    A name is the last descriptive folder. If two names are equal, each gets more of its path.
    """
    steps = [_steps(path, given) for path, given in places]
    lengths = [_first_length(each) for each in steps]
    for _ in range(max(map(len, steps), default=0)):
        count = Counter(_name(each, length) for each, length in zip(steps, lengths, strict=True))
        longer = [
            length + 1 if count[_name(each, length)] > 1 and length < len(each) else length
            for each, length in zip(steps, lengths, strict=True)
        ]
        if longer == lengths:
            break
        lengths = longer
    found = [_name(each, length) for each, length in zip(steps, lengths, strict=True)]
    count = Counter(found)
    pairs = zip(steps, found, strict=True)
    return _numbered(["/".join(each) if count[name] > 1 and each else name for each, name in pairs])


def _steps(path: str, given: str) -> list[str]:
    folders = [step for step in path.split(os.sep) if step not in ("", os.curdir)]
    if given and (not folders or folders[-1] != given):
        folders.append(given)
    return folders


def _first_length(steps: Sequence[str]) -> int:
    """Return the number of last folders in the shortest descriptive name."""
    telling = next((length for length in range(1, len(steps) + 1) if not _GENERIC.fullmatch(steps[-length])), None)
    return telling if telling is not None else min(len(steps), 1)


def _name(steps: Sequence[str], length: int) -> str:
    """Return the last folders without generic ones, unless all are generic."""
    chosen = steps[len(steps) - length :] if length else []
    if length <= len(steps):
        telling = [step for step in chosen if not _GENERIC.fullmatch(step)]
        chosen = telling or chosen
    return "/".join(chosen) or _ROOT


def _numbered(found: Sequence[str]) -> list[str]:
    count = Counter(found)
    seen: Counter[str] = Counter()
    taken = set(found)
    result = []
    for name in found:
        if count[name] == 1:
            result.append(name)
            continue
        seen[name] += 1
        numbered = name if seen[name] == 1 else f"{name}-{seen[name]}"
        while numbered in taken and numbered != name:
            seen[name] += 1
            numbered = f"{name}-{seen[name]}"
        taken.add(numbered)
        result.append(numbered)
    return result
