"""Probes of kubelets, led to the proxy: they come in clear text from the node, and policies would deny them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from eastgate.controller.injection.fields import Plain, mapping, mappings
from eastgate.controller.injection.options import InjectionRefused
from eastgate.envoy.config.probes import PROBE_PORT, AppProbe, ProbeKind

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HANDLERS = ("httpGet", "tcpSocket", "grpc")
_LONGEST = 3600  # seconds between two probes


def rewrite_probes(container: Plain) -> tuple[Plain, dict[str, Any], list[AppProbe]]:
    """Return a container whose probes ask the proxy, the probes that it had, and what the proxy is to probe itself."""
    rewritten, originals, probes = deepcopy(container), {}, []
    for field in _PROBES:
        probe = mapping(container, field)
        app = _read(container, field, probe)
        if app is None:
            continue
        kept = {key: value for key, value in probe.items() if key not in _HANDLERS}
        rewritten[field] = {"httpGet": {"path": app.path, "port": PROBE_PORT, "scheme": "HTTP"}, **deepcopy(kept)}
        originals[field] = deepcopy(probe)
        probes.append(app)
    return rewritten, originals, probes


def restore_probes(containers: list[Plain], annotation: str | None) -> list[Plain]:
    """Return containers with the probes that they had before."""
    from eastgate.reading.strict_json import read_object

    try:
        read = read_object((annotation or "{}").encode())
    except ValueError:
        raise InjectionRefused("the annotation with the original probes is no JSON object") from None
    by_container = {name: probes for name, probes in read.items() if isinstance(probes, dict)}
    if by_container.keys() != read.keys():
        raise InjectionRefused("the annotation with the original probes is no mapping")
    return [
        container | {field: deepcopy(by_container[name][field]) for field in _PROBES if field in by_container[name]}
        if (name := container.get("name")) in by_container
        else container
        for container in containers
    ]


def _read(container: Plain, field: str, probe: Plain) -> AppProbe | None:
    """Return the probe of an application; None for one that does not come in through the network."""
    handler = next((handler for handler in _HANDLERS if handler in probe), None)
    action = mapping(probe, handler) if handler is not None else {}
    if handler is None or action.get("host"):
        return None  # not of this pod
    kind, target = ProbeKind.TCP, ""
    if handler == "httpGet":
        kind = ProbeKind.HTTPS if str(action.get("scheme", "HTTP")).upper() == "HTTPS" else ProbeKind.HTTP
        target = f"/{str(action.get('path') or '').removeprefix('/')}"
    elif handler == "grpc":
        kind, target = ProbeKind.GRPC, str(action.get("service") or "")
    return AppProbe(
        f"/probes/{container.get('name')}/{field}",
        kind,
        _port(container, action),
        target,
        tuple((str(header.get("name")), str(header.get("value") or "")) for header in mappings(action, "httpHeaders")),
        _seconds(probe, "periodSeconds", 10),
        _seconds(probe, "timeoutSeconds", 1),
    )


def _port(container: Plain, action: Plain) -> int:
    port = action.get("port")
    if isinstance(port, str):
        named = (
            declared.get("containerPort") for declared in mappings(container, "ports") if declared.get("name") == port
        )
        port = next(named, int(port) if port.isascii() and port.isdigit() else None)
    if not isinstance(port, int):
        raise InjectionRefused(f"a probe of container {container.get('name')} has a port that is not declared")
    return port


def _seconds(probe: Plain, field: str, otherwise: int) -> int:
    value = probe.get(field) or otherwise
    return min(value, _LONGEST) if isinstance(value, int) and value > 0 else otherwise
