"""Templates whose policies depend on the cluster: on `lookup`, on its APIs, or on upgrade or install.

Eastgate does not ask a cluster here, so such a template may make another policy, or none.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping

from eastgate.basics.records import dataclass
from eastgate.basics.regexes import regex

ASKED_API = regex(rb'APIVersions\.Has\s+\(?\s*"([\w./-]+)"')
_POLICY = regex(rb"""(?m)^\s*kind:\s*["']?\w*(?:Polic|Authori|AuthConfig|EnvoyFilter|Sidecar|Server\b|ServerAuth)""")
_DEFINE = regex(rb"""\{\{-?\s*define\s+"([^"]+)"\s*-?\}\}""")
_INCLUDE = regex(rb"""\b(?:include|template)\s+"([^"]+)\"""")
_LOOKUP = regex(rb"""(?:\{\{-?|[(|=]|\b(?:if|with|range|and|or|not|empty))\s*lookup\s+["(.$]""")
_RELEASE = regex(rb"\.Release\.Is(?:Upgrade|Install)\b")
_ANY_API = regex(rb"\bAPIVersions\b")
_NEGATED = regex(rb"""\bnot\s+\(?\s*\$?\.Capabilities\.APIVersions|\{\{-?\s*else\b""")


_MAX_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class ClusterTemplate:
    """A template of policies, and the expression that asks the cluster."""

    path: str
    asks: str


def cluster_templates(files: Mapping[str, bytes]) -> Iterator[ClusterTemplate]:
    """Yield the templates of a chart whose policies depend on the cluster."""
    texts = {path: text for path, text in files.items() if f"{os.sep}templates{os.sep}" in path}
    helpers = {name: body for text in texts.values() for name, body in _helpers(text)}
    asking = {name: asks for name, body in helpers.items() if (asks := _asks(body)) is not None}
    while more := {name: via for name, body in helpers.items() if name not in asking and (via := _via(body, asking))}:
        asking |= more
    for path, text in sorted(texts.items()):
        if _POLICY.search(text) is not None and (asks := _asks(text) or _via(text, asking)):
            yield ClusterTemplate(path, asks)


def _helpers(text: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the named templates of a file, each up to the next one."""
    found = list(_DEFINE.finditer(text))
    for number, match in enumerate(found):
        end = found[number + 1].start() if number + 1 < len(found) else len(text)
        yield match[1], text[match.end() : end]


def _via(text: bytes, asking: Mapping[bytes, str]) -> str | None:
    return next((asking[name] for name in _INCLUDE.findall(text) if name in asking), None)


def _asks(text: bytes) -> str | None:
    if _LOOKUP.search(text) is not None:
        return "lookup"
    if _RELEASE.search(text) is not None:
        return ".Release.IsUpgrade"
    known = ASKED_API.findall(text)
    is_extension = any(_is_extension(name.decode().partition("/")[0]) for name in known)
    if len(_ANY_API.findall(text)) > len(known) or (is_extension and _NEGATED.search(text) is not None):
        return ".Capabilities.APIVersions"
    return None


def asked_apis(files: Mapping[str, bytes]) -> list[str]:
    """Return the APIs of extensions that templates test for by name.

    They count as installed: otherwise a policy that needs them would be silently missing.
    """
    found = {name.decode() for text in files.values() for name in ASKED_API.findall(text)}
    return sorted(name for name in found if _is_extension(name.partition("/")[0]))


def reads_files(chart: str) -> bool:
    """Return whether templates of a chart read other files of the chart."""
    for folder, _, names in os.walk(os.path.join(chart, "templates")):
        for name in names:
            with contextlib.suppress(OSError), open(os.path.join(folder, name), "rb") as file:
                if b".Files." in file.read(_MAX_BYTES):
                    return True
    return False


def _is_extension(group: str) -> bool:
    """Return whether an API group is not part of Kubernetes."""
    return "." in group and (not group.endswith(".k8s.io") or group.startswith(("gateway.", "policy.networking.")))
