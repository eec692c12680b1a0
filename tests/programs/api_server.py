"""A Kubernetes API server of one's own: etcd and kube-apiserver on loopback, with a folder for keys and tokens.

No controller runs: a Deployment makes no pods, and ServiceAccounts exist once a test has created them.
"""

from __future__ import annotations

import json
import secrets
import subprocess
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.programs.building import find
from tests.programs.processes import Processes, free_port

_ADMINISTRATORS = "system:masters"


class ApiServer(Processes):
    """A running API server. `kubeconfig` makes its reader an administrator."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.kubeconfig = folder / "kubeconfig"
        self.url = f"https://127.0.0.1:{free_port()}"
        self.token = secrets.token_hex(16)
        self._etcd = f"http://127.0.0.1:{free_port()}"
        self._programs = {name: find(name) for name in ("etcd", "kube-apiserver", "kubectl")}

    @property
    def certificate(self) -> Path:
        """The certificates that the server proves itself with, which it makes itself: what a client has to trust."""
        return self.folder / "certificates" / "apiserver.crt"

    def kubectl(self, *arguments: str, stdin: str = "", fails: bool = False) -> str:
        """Run kubectl as an administrator, and return what it prints; with `fails`, what it complains about."""
        done = self.try_kubectl(*arguments, stdin=stdin)
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        return done.stderr if fails else done.stdout

    def try_kubectl(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run kubectl as an administrator, whatever becomes of it."""
        command: list[str | Path] = [self._programs["kubectl"], *arguments]
        command += ["--kubeconfig", self.kubeconfig, "--cache-dir", self.folder / "cache"]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=120)

    def apply(self, *manifests: dict[str, Any]) -> str:
        """Apply manifests on the side of the server."""
        listed = {"apiVersion": "v1", "kind": "List", "items": manifests}
        return self.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(listed))

    def get(self, *arguments: str) -> Any:
        """Return what `kubectl get` shows as JSON."""
        return json.loads(self.kubectl("get", "-o", "json", *arguments))

    def start(self) -> None:
        """Start etcd and the API server."""
        self.folder.chmod(0o700)
        self._write_files()
        peers = f"http://127.0.0.1:{free_port()}"
        self.run(
            [
                *(self._programs["etcd"], "--data-dir", self.folder / "etcd", "--unsafe-no-fsync"),
                *("--listen-client-urls", self._etcd, "--advertise-client-urls", self._etcd),
                *("--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers),
                *("--initial-cluster", f"default={peers}"),
            ]
        )
        self.run_server()

    def run_server(self) -> None:
        """Start the API server, and wait until it answers."""
        key = self.folder / "accounts.pem"
        self.run(
            [
                *(self._programs["kube-apiserver"], f"--etcd-servers={self._etcd}"),
                *("--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none"),
                *(f"--secure-port={self.url.rpartition(':')[2]}", f"--cert-dir={self.certificate.parent}"),
                *("--authorization-mode=RBAC", f"--token-auth-file={self.folder / 'tokens.csv'}"),
                *("--disable-admission-plugins=ServiceAccount", "--service-cluster-ip-range=10.96.0.0/16"),
                *(f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}"),
                *("--service-account-issuer=https://kubernetes.default.svc", "--profiling=false"),
                "--shutdown-watch-termination-grace-period=2s",
            ]
        )
        self.wait_until(lambda: self.try_kubectl("get", "--raw=/readyz").returncode == 0)
        self.wait_until(lambda: self.try_kubectl("get", "namespace", "default").returncode == 0)

    def _write_files(self) -> None:
        (self.folder / "tokens.csv").write_text(f"{self.token},administrator,administrator,{_ADMINISTRATORS}\n")
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
        (self.folder / "accounts.pem").write_bytes(pem)
        named = {"name": "here"}
        cluster = {"server": self.url, "certificate-authority": str(self.certificate)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [named | {"cluster": cluster}],
            "users": [named | {"user": {"token": self.token}}],
            "contexts": [named | {"context": {"cluster": "here", "user": "here"}}],
            "current-context": "here",
        }
        self.kubeconfig.write_text(json.dumps(config))
