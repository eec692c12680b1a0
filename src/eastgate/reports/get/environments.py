"""The environments of a repository, as rows and as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eastgate.basics.diagnostics.printable import printable
from eastgate.reading.repository import ChartRender, Environment, Files, KustomizeBuild, Part
from eastgate.reports.columns import Grid

_HEADERS = ("NAME", "KIND", "ENTRY", "PARTS", "NAMESPACE", "LEFT OUT")


def environment_lines(
    environments: Sequence[Environment], *, wide: bool, headers: bool, width: int | None, color: bool
) -> list[str]:
    """Return the rows. With `wide`, each part and each omitted object has a line."""
    rows = tuple(_row(environment, wide=wide) for environment in environments)
    return Grid(_HEADERS if headers else None, rows).lines(width, color=color) if rows else []


def environments_to_json(environments: Sequence[Environment]) -> list[dict[str, object]]:
    """Return environments as plain data."""
    return [
        {
            "name": environment.name,
            "kind": environment.kind.value,
            "entry": environment.entry,
            "namespace": environment.namespace,
            "parts": [_part_to_json(part) for part in environment.parts],
            "leftOut": [each.to_json() for each in environment.left_out],
        }
        for environment in environments
    ]


def _row(environment: Environment, *, wide: bool) -> tuple[tuple[str, ...], ...]:
    parts = [_describe(part) for part in environment.parts] if wide else [_count(environment.parts)]
    left_out = list(map(str, environment.left_out))
    if not wide:
        left_out = [str(len(left_out))] if left_out else []
    cells = ([environment.name], [environment.kind.value], [environment.entry], parts)
    more = ([environment.namespace or "-"], left_out or ["-"])
    return tuple(tuple(map(printable, cell)) for cell in (*cells, *more))


def _count(parts: Sequence[Part]) -> str:
    """Count the parts of each kind: `2 kustomizations, 1 chart`."""
    counts: dict[str, int] = {}
    for part in parts:
        match part:
            case Files():
                counts["file"] = counts.get("file", 0) + len(part.paths)
            case KustomizeBuild():
                counts["kustomization"] = counts.get("kustomization", 0) + 1
            case ChartRender():
                counts["chart"] = counts.get("chart", 0) + 1
    return ", ".join(f"{count} {what}{'' if count == 1 else 's'}" for what, count in counts.items()) or "none"


def _describe(part: Part) -> str:
    match part:
        case Files():
            return f"files {', '.join(part.paths)}"
        case KustomizeBuild():
            return f"kustomization {part.folder}"
        case ChartRender():
            values = f" with {', '.join(part.value_files)}" if part.value_files else ""
            return f"chart {part.folder} as {part.release}{values}"


def _part_to_json(part: Part) -> Mapping[str, object]:
    match part:
        case Files():
            return {"files": list(part.paths)}
        case KustomizeBuild():
            return {
                "kustomization": part.folder,
                "namespace": part.namespace,
                "variables": dict(part.variables) if part.substitute else None,
                "overlay": dict(part.overlay) or None,
            }
        case ChartRender():
            return {
                "chart": part.folder,
                "release": part.release,
                "namespace": part.namespace,
                "valueFiles": list(part.value_files),
                "values": [dict(values) for values in part.values],
            }
