"""Reads fields of pods. What the API server would refuse is refused here as well, and never guessed at."""

from __future__ import annotations

from typing import Any

from eastgate.controller.injection.options import InjectionRefused

Plain = dict[str, Any]


def mapping(of: Plain, key: str) -> Plain:
    """Return the mapping at a key; an empty one where there is none."""
    value = of.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InjectionRefused(f"`{key}` is no mapping")
    return value


def mappings(of: Plain, key: str) -> list[Plain]:
    """Return the list of mappings at a key; an empty one where there is none."""
    value = of.get(key)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise InjectionRefused(f"`{key}` is no list of mappings")
    return value


def strings(of: Plain, key: str) -> dict[str, str]:
    """Return the mapping of texts to texts at a key."""
    values = mapping(of, key)
    if not all(isinstance(text, str) for entry in values.items() for text in entry):
        raise InjectionRefused(f"`{key}` has a value that is no text")
    return values


def containers_of(spec: Plain) -> list[Plain]:
    """Return all containers of a pod, those that run first included."""
    return [*mappings(spec, "initContainers"), *mappings(spec, "containers"), *mappings(spec, "ephemeralContainers")]
