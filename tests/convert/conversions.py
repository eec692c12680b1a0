"""Conversions of plain manifests, for tests."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from eastgate.convert import Assumption, Options, convert
from eastgate.dialects import reads
from eastgate.reading.manifests import read_text
from eastgate.settings import Settings

Manifest = dict[str, Any]
ALL_ASSUMED = Options(frozenset(Assumption))


@dataclass(frozen=True)
class Outcome:
    """The result of a conversion: new manifests, unconverted originals, and the codes of the losses."""

    written: list[Manifest]
    kept: list[Manifest]
    losses: list[str]


def converted(manifests: list[Manifest], to: str, settings: Settings, options: Options | None = None) -> Outcome:
    text = json.dumps({"kind": "List", "apiVersion": "v1", "items": manifests})
    reading = read_text("generated.json", text, positioned=reads)
    sorted_out, conversion = convert(reading, to, settings, options)
    assert sorted_out.reporter.errors == []
    kept = {(one.api_version, one.kind, one.namespace, one.name) for one in conversion.kept}
    return Outcome(
        json.loads(json.dumps(conversion.manifests)),
        [m for m in manifests if _identity(m) in kept],
        [loss.code.id for loss in conversion.losses],
    )


def _identity(manifest: Manifest) -> tuple[str, str, str | None, str]:
    metadata = manifest["metadata"]
    return manifest["apiVersion"], manifest["kind"], metadata.get("namespace"), metadata["name"]


def is_policy(manifest: Manifest) -> bool:
    return bool(manifest["kind"].endswith("Policy"))
