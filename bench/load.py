"""How fast manifests are read, against the parsers that others use."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from bench.manifests import manifests_of
from bench.report import Section
from bench.timing import interleaved
from bench.worlds import generate
from eastgate import read_manifests

__all__ = ["run"]


def run(*, quick: bool) -> Section:
    """YAML and JSON."""
    plan = generate(250 if quick else 1_000)
    documents = list(manifests_of(plan))
    section = Section(
        "Reading manifests",
        "CPU us per manifest. Eastgate: from a file to checked objects and policies with lines, duplicate keys and "
        "unknown fields refused. Others: PyYAML's CSafeLoader (libyaml), json.loads: to plain dicts, nothing checked.",
        ("format", "manifests", "bytes each", "Eastgate us", "per second", "other", "other us", "times"),
    )
    with TemporaryDirectory() as folder:
        as_yaml, as_json = Path(folder) / "all.yaml", Path(folder) / "all.json"
        as_yaml.write_text(yaml.dump_all(documents, Dumper=yaml.CSafeDumper, sort_keys=False), encoding="utf-8")
        as_json.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}), encoding="utf-8")
        for path, other, name in ((as_yaml, _yaml, "CSafeLoader"), (as_json, _json, "json.loads")):
            read = read_manifests([path])
            assert not read.reporter.errors, read.reporter.errors[0]
            assert len(read.policies) + len(read.objects) == len(documents)
            ours, theirs = interleaved(3, partial(read_manifests, [path]), partial(other, path))
            each, other_each = ours / len(documents) * 1e6, theirs / len(documents) * 1e6
            size = path.stat().st_size / len(documents)
            section.rows.append(
                [path.suffix[1:].upper(), len(documents), size, each, 1e6 / each, name, other_each, each / other_each]
            )
    return section


def _yaml(path: Path) -> object:
    with path.open(encoding="utf-8") as stream:
        return list(yaml.load_all(stream, yaml.CSafeLoader))


def _json(path: Path) -> object:
    return json.loads(path.read_text(encoding="utf-8"))
