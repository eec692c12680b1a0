"""The speed of reading manifests, against other parsers."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from bench.children import peak_bytes, run_child
from bench.manifests import manifests_of
from bench.report import Section
from bench.timing import clock, interleaved
from bench.worlds import generate
from eastgate.manifests import read_manifests

__all__ = ["run"]

_MANIFESTS_PER_POLICY = 2.2  # in a generated world: a policy, 0.8 pods and 0.4 Services
_MAX_CPU_SECONDS = 240.0


def run(*, quick: bool) -> Section:
    """Measure YAML and JSON in two sizes."""
    section = Section(
        "Reading manifests",
        "CPU us per manifest. Eastgate: from a file to checked objects and policies with line numbers; it refuses "
        "duplicate keys and unknown fields. Others: PyYAML's CSafeLoader (libyaml), json.loads: to plain dicts only. "
        "The small file: in turns, the median of three; the large one: once by each, in a process of its own "
        "without garbage collection, with its peak memory.",
        ("format", "manifests", "bytes each", "Eastgate us", "per second", "other", "other us", "times",
         "Eastgate s", "other s", "Eastgate MB", "other MB"),
    )  # fmt: skip
    for manifests in (500,) if quick else (2_000, 100_000):
        documents = list(manifests_of(generate(round(manifests / _MANIFESTS_PER_POLICY))))
        with TemporaryDirectory() as folder:
            as_yaml, as_json = Path(folder) / "all.yaml", Path(folder) / "all.json"
            as_yaml.write_text(yaml.dump_all(documents, Dumper=yaml.CSafeDumper, sort_keys=False), encoding="utf-8")
            as_json.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}), encoding="utf-8")
            count = len(documents)
            del documents
            for path, other in ((as_yaml, "CSafeLoader"), (as_json, "json.loads")):
                section.rows.append(_row(path, other, count))
    return section


def _row(path: Path, other: str, count: int) -> list[str | float]:
    size = path.stat().st_size / count
    if count > 10_000:
        ours, theirs = (
            run_child("bench.load", how, str(path), str(count), seconds=_MAX_CPU_SECONDS) for how in ("eastgate", other)
        )
        if ours is None or theirs is None:
            return [path.suffix[1:].upper(), count, size, f"over {_MAX_CPU_SECONDS:.0f} s", *[""] * 8]
        took = [ours["seconds"], theirs["seconds"]]
        peaks: list[str | float] = [ours["bytes"] / 1e6, theirs["bytes"] / 1e6]
    else:
        took = interleaved(3, lambda: _READERS["eastgate"](path, count), lambda: _READERS[other](path, count))
        peaks = ["-", "-"]
    each, other_each = (seconds / count * 1e6 for seconds in took)
    return [path.suffix[1:].upper(), count, size, each, 1e6 / each, other, other_each, each / other_each, *took, *peaks]


def _eastgate(path: Path, count: int) -> None:
    read = read_manifests([path])
    assert not read.reporter.errors, read.reporter.errors[0]
    assert len(read.policies) + len(read.objects) == count


def _yaml(path: Path, count: int) -> None:
    with path.open(encoding="utf-8") as stream:
        assert len(list(yaml.load_all(stream, yaml.CSafeLoader))) == count


def _json(path: Path, count: int) -> None:
    assert len(json.loads(path.read_text(encoding="utf-8"))["items"]) == count


_READERS: Mapping[str, Callable[[Path, int], None]] = {
    "eastgate": _eastgate,
    "CSafeLoader": _yaml,
    "json.loads": _json,
}


if __name__ == "__main__":
    gc.disable()
    start = clock()
    _READERS[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]))
    print(json.dumps({"seconds": clock() - start, "bytes": peak_bytes()}))
