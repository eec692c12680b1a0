"""Odd files beside the policies: later saves still take effect."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from io import BytesIO
from pathlib import Path

import pytest

from eastgate.control.authorizer.log import DecisionLog
from eastgate.control.authorizer.workers import BAD_INPUT, _Worker
from tests.control.authorizer.proxies import Authorizer
from tests.control.authorizer.test_reloading import DENY
from tests.control.authorizer.test_service import reviews
from tests.control.authorizer.worlds import MANIFESTS
from tests.patience import PATIENCE

pytestmark = pytest.mark.real

NULL = """\
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: odd, namespace: shop}
spec: {podSelector: {}, ingress: [{from: [{ipBlock: {cidr: 0.0.0.0/0, except: [null]}}]}]}
"""
LIST = """\
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: SecurityPolicy
metadata: {name: odd, namespace: prod}
spec: {targetRef: {group: gateway.networking.k8s.io, kind: [Gateway], name: agents}}
"""
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: odd, namespace: shop}\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [(b"null.yaml", NULL), (b"list.yaml", LIST), (b"odd\xff.yaml", POD)],
    ids=["a null among exceptions", "a list for the kind of a target", "a name that is no UTF-8"],
)
def test_a_denial_that_is_saved_after_an_odd_file_comes_in_force(name: bytes, text: str, tmp_path: Path) -> None:
    folder = tmp_path / "policies"
    folder.mkdir()
    (folder / "other.yaml").write_text(POD.replace("odd", "other"))
    with Authorizer(tmp_path, MANIFESTS, "-f", str(folder)) as authorizer:
        assert reviews(authorizer) == 200
        path = os.path.join(os.fsencode(folder), name)
        with open(path, "w") as odd:
            odd.write(text)
        authorizer.wait_until(lambda: {"reloaded", "reload failed"} & _events(authorizer))
        assert authorizer.get("/readyz") == 200
        if "reload failed" in _events(authorizer):  # everything stays as it is until the file is corrected
            os.unlink(path)
        authorizer.manifests.write_text(MANIFESTS + DENY)
        authorizer.wait_until(lambda: reviews(authorizer) == 403)
        assert authorizer.get("/readyz") == 200
        assert "following failed" not in _events(authorizer)


def _events(authorizer: Authorizer) -> set[object]:
    return {record.get("event") for record in authorizer.log}


def test_a_process_that_has_served_is_started_again_after_any_status(tmp_path: Path) -> None:
    """A bug may end a process with status 2, like bad input."""
    started: list[int] = []

    def start() -> subprocess.Popen[bytes]:
        started.append(1)
        process = subprocess.Popen([sys.executable, "-c", "raise SystemExit(2)"])
        process.wait()
        return process

    log = DecisionLog(BytesIO())
    worker = _Worker(start, tmp_path / "serving-0")
    assert worker.restart_if_ended(log, 0) == BAD_INPUT
    (tmp_path / "serving-0").touch()
    end = time.monotonic() + PATIENCE
    while len(started) < 3:
        assert worker.restart_if_ended(log, 0) is None
        assert time.monotonic() < end
