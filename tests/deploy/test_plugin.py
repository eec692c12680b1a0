"""`kubectl eastgate` with the real kubectl, and the archive and manifest for krew."""

from __future__ import annotations

import importlib.util
import io
import os
import subprocess
import sys
import tarfile
from hashlib import sha256
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from eastgate._version import __version__
from tests.authority.sources.objects import GUARDED, policy
from tests.deploy.charts import ROOT
from tests.programs import ApiServer, find

pytestmark = pytest.mark.apiserver  # kubectl is built with the API server

_PLUGIN = f"#!{sys.executable}\nfrom eastgate.cli.plugin import main\n\nmain()\n"


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Return a PATH with the plugin, as pip would install it."""
    program = tmp_path / "bin" / "kubectl-eastgate"
    program.parent.mkdir()
    program.write_text(_PLUGIN)
    program.chmod(0o755)
    return f"{program.parent}:{os.environ['PATH']}"


def kubectl(path: str, *arguments: str, kubeconfig: Path | None = None) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "PATH": path, "KUBECONFIG": str(kubeconfig or "/dev/null")}
    return subprocess.run([find("kubectl"), *arguments], capture_output=True, text=True, env=variables, timeout=120)


def test_help_calls_it_as_people_do(path: str) -> None:
    done = kubectl(path, "eastgate", "--help")
    assert done.stdout.startswith("Usage: kubectl eastgate [OPTIONS] COMMAND"), done.stderr
    assert "kubectl eastgate check" in kubectl(path, "eastgate", "check", "--help").stdout


def test_it_asks_the_cluster_that_kubectl_asks(path: str, api_server: ApiServer) -> None:
    api_server.install("eastgate")
    namespace = api_server.namespace("plugin")
    api_server.create(f"/api/v1/namespaces/{namespace}/pods", GUARDED)
    api_server.run_pod(namespace, "cart", "10.0.0.9")
    api_server.apply(policy(namespace, "cart", ["web"]))
    question = ["--to", f"pod:{namespace}/cart", "--port", "8080", "-o", "json"]
    for account, verdict in (("web", "allow"), ("stranger", "deny")):
        asked = ["check", "--cluster", "--from", f"sa:{namespace}/{account}", *question]
        done = kubectl(path, "eastgate", *asked, kubeconfig=api_server.kubeconfig)
        assert f'"{verdict}"' in done.stdout.lower(), done.stdout + done.stderr


def test_without_a_kubeconfig_it_says_so(path: str) -> None:
    done = kubectl(path, "eastgate", "check", "--cluster", "--from", "anonymous", "--to", "pod:shop/cart")
    assert done.returncode == 2
    assert done.stderr


def _package() -> ModuleType:
    spec = importlib.util.spec_from_file_location("krew_package", ROOT / "deploy" / "krew" / "package.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_archive_matches_the_manifest(tmp_path: Path) -> None:
    package = _package()
    content: bytes = package.archive()
    assert content == package.archive()
    manifest = yaml.safe_load(package.manifest("https://plugins.example/kubectl-eastgate.tar.gz", content))
    assert manifest["spec"]["version"] == f"v{__version__}"
    (platform,) = manifest["spec"]["platforms"]
    assert platform["sha256"] == sha256(content).hexdigest()
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        assert set(archive.getnames()) == {entry["from"] for entry in platform["files"]}
        archive.extractall(tmp_path, filter="data")
    program = tmp_path / str(platform["bin"])
    without = subprocess.run([program, "version"], capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"})
    assert without.returncode == 2
    assert "pipx install eastgate" in without.stderr
    standing_in = tmp_path / "bin" / "eastgate"
    standing_in.parent.mkdir()
    standing_in.write_text('#!/bin/sh\necho "$@"\n')
    standing_in.chmod(0o755)
    variables = {"PATH": f"{standing_in.parent}:/usr/bin:/bin"}
    done = subprocess.run([program, "check", "a b"], capture_output=True, text=True, env=variables)
    assert done.stdout == "check a b\n"
