"""Find a program, or build it from the modules that `go/<folder>` pins.

If the folder has a `changes.json`, the program is built from copies of these modules with some text replaced.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.missing import give_up

_LISTS = Path(__file__).with_name("go")
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "eastgate" / "programs"
_TIMEOUT_SECONDS = 2400
_MAX_TRIES = 4  # a download of modules may fail temporarily
_PAUSE_SECONDS = 20


@dataclass(frozen=True, slots=True)
class Program:
    """A main package of a module that `folder` pins. With `with_c`, it needs a C compiler.

    With `any_version`, an installed program is used, and tests are skipped without it.
    """

    folder: str
    package: str
    linker_flags: str = "-s -w"
    with_c: bool = False
    any_version: bool = False


def _kubernetes(name: str) -> Program:
    """Return a program of Kubernetes. The linker sets its version, which would otherwise be v0.0.0."""
    version = {"gitVersion": "v1.35.4", "gitMajor": "1", "gitMinor": "35"}
    linked = (f"-X k8s.io/component-base/version.{variable}={value}" for variable, value in version.items())
    flags = " ".join(("-s -w", *linked))
    return Program("kubernetes", f"k8s.io/kubernetes/cmd/{name}", flags, any_version=True)


PROGRAMS: Mapping[str, Program] = {
    "authorino": Program("authorino", "github.com/kuadrant/authorino"),
    "expressions": Program("expressions", "."),
    "istio": Program("istio", "."),
    "kuadrant": Program("kuadrant", "."),
    "etcd": Program("etcd", "go.etcd.io/etcd/server/v3", any_version=True),
    "h2spec": Program("h2spec", "github.com/summerwind/h2spec/cmd/h2spec"),
    "helm": Program("helm", "helm.sh/helm/v4/cmd/helm", any_version=True),
    "kube-apiserver": _kubernetes("kube-apiserver"),
    "kube-controller-manager": _kubernetes("kube-controller-manager"),
    "kubectl": _kubernetes("kubectl"),
    "netpolicy": Program("netpol-analyzer", "github.com/np-guard/netpol-analyzer/cmd/netpolicy"),
    "opa": Program("opa", "github.com/open-policy-agent/opa"),
    "opa-envoy": Program("opa-envoy", "github.com/open-policy-agent/opa-envoy-plugin/cmd/opa-envoy-plugin"),
    "spire-agent": Program("spire", "github.com/spiffe/spire/cmd/spire-agent", with_c=True),
    "spire-server": Program("spire", "github.com/spiffe/spire/cmd/spire-server", with_c=True),
}


def find(name: str) -> Path:
    """Return the path of a program, and build it if necessary. Fail the test if that is not possible."""
    program = PROGRAMS[name]
    return _installed(name, program) or _cached(name, program)


def are_missing(*names: str) -> bool:
    """Return whether one of the programs is not installed, not in the cache, and cannot be built."""
    return shutil.which("go") is None and not are_ready(*names)


def are_ready(*names: str) -> bool:
    """Return whether all programs are installed or in the cache."""
    return all(_installed(name, PROGRAMS[name]) or (_folder(name, PROGRAMS[name]) / name).exists() for name in names)


def _installed(name: str, program: Program) -> Path | None:
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    given = shutil.which(name, path=assets) if assets else None
    if given is None and program.any_version:
        given = shutil.which(name)
    return Path(given) if given else None


def _folder(name: str, program: Program) -> Path:
    """Return the folder of a program in the cache. Its name has a hash of the sources."""
    lists = _LISTS / program.folder
    pins = b"".join(file.read_bytes() for file in sorted(lists.iterdir())) + repr(program).encode()
    return _CACHE / f"{name}-{hashlib.sha256(pins).hexdigest()[:12]}"


def _cached(name: str, program: Program) -> Path:
    folder = _folder(name, program)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            _build(name, program, folder)
    return path


def _build(name: str, program: Program, folder: Path) -> None:
    needed = ("go", "gcc") if program.with_c else ("go",)
    missing = [tool for tool in needed if shutil.which(tool) is None]
    if missing:
        if program.any_version:
            give_up(name, f"install it, or {' and '.join(missing)} to build it")
        pytest.fail(f"building {name} needs {' and '.join(missing)}")
    source = folder / "source"
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(_LISTS / program.folder, source)
    changes = source / "changes.json"
    modules = "vendor" if changes.exists() else "readonly"
    flags = (f"-mod={modules}", "-trimpath", "-buildvcs=false", "-ldflags", program.linker_flags)
    try:
        if changes.exists():
            _run_go(program, source, "mod", "vendor")
            _change(source / "vendor", json.loads(changes.read_text("utf-8")))
        _run_go(program, source, "build", *flags, "-o", f"built/{name}", program.package)
    except subprocess.CalledProcessError as error:
        pytest.fail(f"{name} cannot be built here: {error.stderr[-400:]}")
    except subprocess.TimeoutExpired:
        pytest.fail(f"{name} cannot be built here in {_TIMEOUT_SECONDS} seconds")
    (source / "built" / name).rename(folder / name)


def _run_go(program: Program, source: Path, *arguments: str) -> None:
    command = ["nice", "-n", "19", "go", *arguments]
    environment = {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "", "CGO_ENABLED": str(int(program.with_c))}
    for left in reversed(range(_MAX_TRIES)):
        try:
            subprocess.run(
                command,
                cwd=source,
                env=environment,
                capture_output=True,
                text=True,
                check=True,
                timeout=_TIMEOUT_SECONDS,
            )
        except subprocess.CalledProcessError:
            if not left:
                raise
            time.sleep(_PAUSE_SECONDS)
        else:
            return


def _change(modules: Path, changes: list[dict[str, str]]) -> None:
    """Replace text in copies of modules. Fail the test unless each text occurs exactly once."""
    for change in changes:
        file = modules / change["file"]
        content = file.read_text("utf-8")
        if content.count(change["from"]) != 1:
            pytest.fail(f"{change['file']} does not contain exactly one {change['from']}")
        file.write_text(content.replace(change["from"], change["to"]), "utf-8")
