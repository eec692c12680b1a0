"""Converts auth schemes to AuthConfig v1beta3, the one version that Authorino serves today.

A scheme in the names of v1beta1 is renamed field by field; one in the later names has them already. What no version has
(`audiences`) is left out here, and becomes a check in `authorino_checks`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from eastgate.convert.authconfig_words import from_v1beta1, object_of
from eastgate.convert.model import Manifest
from eastgate.reading.manifests import Plain

API_VERSION: Final = "authorino.kuadrant.io/v1beta3"

_SECTIONS: Final = ("authentication", "metadata", "authorization")


def auth_config(scheme: Mapping[str, Plain]) -> Manifest:
    """Return the `spec` of the AuthConfig for a scheme that was read without errors, as plain data without nulls."""
    old = "identity" in scheme or any(isinstance(scheme.get(name), list) for name in (*_SECTIONS, "response"))
    renamed = from_v1beta1(scheme) if old or "denyWith" in scheme else dict(scheme)
    spec = {name: value for name, value in renamed.items() if value not in ({}, [])}
    for section in _SECTIONS:
        if section in spec:
            spec[section] = _in_order(section, object_of(spec[section]))
    if "authentication" in spec:
        spec["authentication"] = {
            n: _without_audiences(object_of(e)) for n, e in object_of(spec["authentication"]).items()
        }
    if "response" in spec:
        spec["response"] = _response(object_of(spec["response"]))
    return spec


def _without_audiences(entry: Manifest) -> Manifest:
    if "jwt" not in entry:
        return entry
    return {**entry, "jwt": {name: value for name, value in object_of(entry["jwt"]).items() if name != "audiences"}}


def _in_order(section: str, entries: Manifest) -> Manifest:
    """Set priorities that keep the written order, where it matters: Authorino evaluates those of one priority at once.

    Of identities the first that recognizes the caller counts. Elsewhere an entry may look at what those before it have
    found.
    """
    priorities = [object_of(entry).get("priority", 0) for entry in entries.values()]
    if len(set(map(str, priorities))) == len(priorities):
        return entries
    if section != "authentication" and f"auth.{section}" not in json.dumps(entries):
        return entries
    ranked = sorted(range(len(priorities)), key=lambda index: (_number(priorities[index]), index))
    ranks = {index: rank for rank, index in enumerate(ranked)}
    return {name: {**object_of(entry), "priority": ranks[index]} for index, (name, entry) in enumerate(entries.items())}


def _number(value: Plain) -> int:
    return value if isinstance(value, int) else 0


def _response(response: Manifest) -> Manifest:
    """Rename `filters` of AuthPolicy to `dynamicMetadata`, as AuthConfig calls it."""
    success = object_of(response.get("success"))
    if "filters" in success:
        success["dynamicMetadata"] = success.pop("filters")
    converted: Manifest = {
        part: {name: _plain(object_of(entry)) for name, entry in object_of(each).items()}
        for part, each in success.items()
    }
    return {**response, "success": converted} if converted else response


def _plain(entry: Manifest) -> Manifest:
    """Convert a literal plain value to an expression: of any other, Authorino tells how Go stores it."""
    plain = object_of(entry.get("plain"))
    if "value" not in plain:
        return entry
    return {**entry, "plain": {"expression": json.dumps(plain["value"], ensure_ascii=False)}}
