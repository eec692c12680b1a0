"""Selects the API server and the user: from kubeconfigs as kubectl finds and merges them, or from the
account of a pod.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from eastgate.reading.kubernetes.errors import KubeconfigError

if TYPE_CHECKING:
    from lightkube.config.kubeconfig import SingleConfig

_DEFAULT = "~/.kube/config"
_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_LISTS = ("clusters", "contexts", "users")
_FILES = {
    "clusters": ("cluster", ("certificate-authority",)),
    "users": ("user", ("client-certificate", "client-key", "tokenFile")),
}
_EXEC_API = "client.authentication.k8s.io"


def load_config(kubeconfig: str | os.PathLike[str] | None = None, context: str | None = None) -> SingleConfig:
    """Return the cluster, user and namespace of a context.

    The files are the given one, those of `$KUBECONFIG`, or ~/.kube/config. In a pod without these files, use its
    service account. Raises KubeconfigError.
    """
    from lightkube.config.kubeconfig import KubeConfig
    from lightkube.core.exceptions import ConfigError

    paths = _paths(kubeconfig)
    try:
        if paths is None:
            config = KubeConfig.from_service_account(_ACCOUNT).get()
        else:
            config = KubeConfig.from_dict(_merge(paths), paths[0]).get(context)
    except (ConfigError, KeyError, ValueError, TypeError, OSError, yaml.YAMLError) as error:
        reason = f"`{error.args[0]}` is missing" if isinstance(error, KeyError) and error.args else str(error)
        raise KubeconfigError(f"{_named(paths)}: {reason}") from error
    if config is None:
        raise KubeconfigError(f"{_named(paths)}: no context is chosen: give one with --context")
    return config


def _named(paths: list[Path] | None) -> str:
    return "the service account of this pod" if paths is None else os.pathsep.join(map(str, paths))


def _paths(given: str | os.PathLike[str] | None) -> list[Path] | None:
    """Return the kubeconfigs to merge; None in a pod without any."""
    if given is not None:
        return [Path(given).expanduser()]
    listed = [Path(path).expanduser() for path in os.environ.get("KUBECONFIG", "").split(os.pathsep) if path]
    if listed:
        return listed
    default = Path(_DEFAULT).expanduser()
    if not default.is_file() and "KUBERNETES_SERVICE_HOST" in os.environ:
        return None
    return [default]


def _merge(paths: list[Path]) -> dict[str, Any]:
    """Merge kubeconfigs as kubectl does: the first entry with a name wins. Missing files are skipped."""
    present = [path for path in paths if path.is_file()]
    if not present:
        raise OSError("there is no such file")
    merged: dict[str, Any] = {name: [] for name in _LISTS}
    for path in present:
        content = yaml.safe_load(path.read_text("utf-8")) or {}
        if not isinstance(content, Mapping):
            raise ValueError(f"{path} is not a kubeconfig")
        if content.get("current-context"):
            merged.setdefault("current-context", content["current-context"])
        for name in _LISTS:
            known = {entry["name"] for entry in merged[name]}
            entries = [_resolve(name, dict(entry), path.parent) for entry in content.get(name) or ()]
            merged[name] += [entry for entry in entries if entry["name"] not in known]
    return merged


def _resolve(name: str, entry: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return an entry whose paths are relative to the folder of its file."""
    if name in _FILES:
        key, files = _FILES[name]
        body = dict(entry.get(key) or {})
        body |= {field: str(folder / body[field]) for field in files if body.get(field)}
        plugin = body.get("exec")
        if isinstance(plugin, Mapping) and plugin.get("apiVersion") == f"{_EXEC_API}/v1":
            # The answers of v1 and v1beta1 are the same, and lightkube knows only v1beta1.
            body["exec"] = {**plugin, "apiVersion": f"{_EXEC_API}/v1beta1"}
        entry[key] = body
    return entry
