"""A Kubernetes API server for tests: etcd and kube-apiserver on loopback, with a folder for keys and tokens.

No controller runs: a Deployment creates no pods, deleted namespaces stay, and tests must create ServiceAccounts.
`ControllerManager` runs the Kubernetes controllers beside it.
"""

from __future__ import annotations

import http.client
import itertools
import json
import secrets
import ssl
import subprocess
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.programs.building import find
from tests.programs.crds import crds
from tests.programs.processes import Processes, free_port

__all__ = ["ApiServer", "ControllerManager"]

_ADMINISTRATORS = "system:masters"
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_NUMBERS = itertools.count(1)

Object = dict[str, Any]


class ApiServer(Processes):
    """A running API server with RBAC. `kubeconfig` is the one of an administrator.

    `options` are further flags of kube-apiserver. With `pods_need_accounts`, the server refuses a pod in a namespace
    without ServiceAccounts, and gives each pod its account and a token, as in any cluster.
    """

    is_bound = True

    def __init__(self, folder: Path, options: Sequence[str] = (), *, pods_need_accounts: bool = False) -> None:
        super().__init__(folder)
        self.kubeconfig = folder / "kubeconfig"
        self.url = f"https://127.0.0.1:{free_port()}"
        self.token = secrets.token_hex(16)
        self._connection: http.client.HTTPSConnection | None = None
        self._etcd = f"http://127.0.0.1:{free_port()}"
        self._programs = {name: find(name) for name in ("etcd", "kube-apiserver", "kubectl")}
        self._options = [*options] if pods_need_accounts else ["--disable-admission-plugins=ServiceAccount", *options]
        self._server: subprocess.Popen[bytes] | None = None
        self._installed: set[str] = set()

    @property
    def certificate(self) -> Path:
        """Return the path of the server's self-signed certificate, which a client must trust."""
        return self.folder / "certificates" / "apiserver.crt"

    @property
    def accounts_key(self) -> Path:
        """Return the path of the key that signs tokens of ServiceAccounts."""
        return self.folder / "accounts.pem"

    def kubectl(self, *arguments: str, stdin: str = "", fails: bool = False) -> str:
        """Run kubectl as an administrator, and return its output, or its errors with `fails`."""
        done = self.try_kubectl(*arguments, stdin=stdin)
        assert (done.returncode != 0) == fails, done.stdout + done.stderr
        return done.stderr if fails else done.stdout

    def try_kubectl(
        self, *arguments: str, stdin: str = "", kubeconfig: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as an administrator, or with `kubeconfig`. Return the completed process, even if it failed."""
        command: list[str | Path] = [self._programs["kubectl"], *arguments]
        command += ["--kubeconfig", kubeconfig or self.kubeconfig, "--cache-dir", self.folder / "cache"]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=120)

    def apply(self, *manifests: Object) -> str:
        """Apply manifests with server-side apply."""
        listed = {"apiVersion": "v1", "kind": "List", "items": manifests}
        return self.kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(listed))

    def get(self, *arguments: str) -> Any:
        """Return the JSON of `kubectl get`."""
        return json.loads(self.kubectl("get", "-o", "json", *arguments))

    def request(self, method: str, path: str, body: object = None, *, token: str | None = None) -> tuple[int, Any]:
        """Send one request as an administrator, or with `token`. Return the status and the answer."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {token or self.token}", "Content-Type": kind}
        is_new = self._connection is None
        if self._connection is None:
            trusted = ssl.create_default_context(cafile=str(self.certificate))
            address = urlsplit(self.url).netloc
            self._connection = http.client.HTTPSConnection(address, context=trusted, timeout=120)
        try:
            self._connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = self._connection.getresponse()
            content = answer.read()
            is_json = answer.getheader("Content-Type", "").startswith("application/json")
            return answer.status, json.loads(content) if is_json else content.decode()
        except (http.client.RemoteDisconnected, ssl.SSLEOFError):
            self._hang_up()
            if is_new:
                raise
            return self.request(method, path, body, token=token)  # the connection was idle for too long
        except (OSError, http.client.HTTPException):
            self._hang_up()
            raise

    def namespace(self, prefix: str = "test", labels: dict[str, str] | None = None) -> str:
        """Create a namespace with a unique name and its `default` ServiceAccount. Return the name."""
        name = f"{prefix}-{next(_NUMBERS)}-{secrets.token_hex(3)}"
        self.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels or {}}})
        self.create(f"/api/v1/namespaces/{name}/serviceaccounts", {"metadata": {"name": "default"}})
        return name

    def create(self, path: str, body: object) -> Any:
        """Create an object, which may already exist, and return the answer of the server."""
        status, answer = self.request("POST", path, body)
        assert status in (200, 201, 409), answer
        return answer

    def install(self, *names: str) -> None:
        """Install CRDs by the names of `crds`, until the server ends, and wait until the server has them."""
        missing = [name for name in names if name not in self._installed]
        definitions = [definition for name in missing for definition in crds(name)]
        for definition in definitions:
            self.create(_DEFINITIONS, definition)
        self.wait_until(lambda: all(self._is_served(definition["metadata"]["name"]) for definition in definitions))
        self._installed.update(missing)

    def _is_served(self, definition: str) -> bool:
        _, answer = self.request("GET", f"{_DEFINITIONS}/{definition}")
        conditions = answer.get("status", {}).get("conditions") or ()
        return any(condition["type"] == "Established" and condition["status"] == "True" for condition in conditions)

    def token_of(self, account: str, *audiences: str, pod: Object | None = None, seconds: int = 3600) -> str:
        """Return a token of a ServiceAccount `namespace/name`, which is created if need be, bound to a pod if given."""
        namespace, _, name = account.partition("/")
        accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        self.create(accounts, {"metadata": {"name": name}})
        spec: Object = {"audiences": list(audiences), "expirationSeconds": seconds}
        if pod is not None:
            metadata = pod["metadata"]
            bound = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
            spec["boundObjectRef"] = bound
        status, answer = self.request("POST", f"{accounts}/{name}/token", {"spec": spec})
        assert status == 201, answer
        token: str = answer["status"]["token"]
        return token

    def kubeconfig_for(self, account: str) -> Path:
        """Write a kubeconfig for a ServiceAccount `namespace/name`, which is created if need be."""
        path = self.folder / f"kubeconfig-{account.replace('/', '-')}-{next(_NUMBERS)}"
        path.write_text(json.dumps(self._kubeconfig(self.token_of(account))))
        path.chmod(0o600)
        return path

    def run_pod(self, namespace: str, name: str, address: str = "127.0.0.1", node: str = "node") -> None:
        """Act as the scheduler and the kubelet: give a pod a node and an address, and make it ready."""
        self.create("/api/v1/nodes", {"metadata": {"name": node}})
        pod = f"/api/v1/namespaces/{namespace}/pods/{name}"
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        self.create(f"{pod}/binding", {"metadata": {"name": name}, "target": target})
        conditions = [{"type": kind, "status": "True"} for kind in ("Ready", "ContainersReady")]
        status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "conditions": conditions}
        code, answer = self.request("PATCH", f"{pod}/status", {"status": status})
        assert code == 200, answer

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
        self.start_again()

    def start_again(self) -> None:
        """Start the API server again on the same port with the data of etcd, and wait until it answers."""
        key = self.accounts_key
        self._server = self.run(
            [
                *(self._programs["kube-apiserver"], f"--etcd-servers={self._etcd}"),
                *("--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none"),
                *(f"--secure-port={self.url.rpartition(':')[2]}", f"--cert-dir={self.certificate.parent}"),
                *("--authorization-mode=RBAC", f"--token-auth-file={self.folder / 'tokens.csv'}"),
                "--service-cluster-ip-range=10.96.0.0/16",
                *(f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}"),
                *("--service-account-issuer=https://kubernetes.default.svc", "--profiling=false"),
                *("--shutdown-watch-termination-grace-period=2s", *self._options),
            ]
        )
        self.wait_until(lambda: self._answers("/readyz") and self._answers("/api/v1/namespaces/default"))

    def terminate(self) -> None:
        """Terminate the API server (SIGTERM), and wait until it has ended. etcd continues."""
        self._end_server(is_asked=True)

    def kill(self) -> None:
        """Kill the API server (SIGKILL). etcd continues."""
        self._end_server(is_asked=False)

    def _end_server(self, *, is_asked: bool) -> None:
        assert self._server is not None, "the API server does not run"
        self._hang_up()
        self.end(self._server, is_asked=is_asked)
        self._server = None

    def compact(self) -> int:
        """Make etcd forget all older revisions. Return the current revision."""
        revision = int(self._ask_etcd("range", {"key": "AA=="})["header"]["revision"])
        self._ask_etcd("compaction", {"revision": str(revision), "physical": True})
        return revision

    def stop(self) -> None:
        """Stop etcd and the API server, and close the connection."""
        self._hang_up()
        super().stop()

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _answers(self, path: str) -> bool:
        try:
            return self.request("GET", path)[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def _ask_etcd(self, method: str, body: Object) -> Any:
        asked = urllib.request.Request(f"{self._etcd}/v3/kv/{method}", json.dumps(body).encode())  # noqa: S310
        with urllib.request.urlopen(asked, timeout=60) as answer:  # noqa: S310 - our own server
            return json.loads(answer.read())

    def _write_files(self) -> None:
        (self.folder / "tokens.csv").write_text(f"{self.token},administrator,administrator,{_ADMINISTRATORS}\n")
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        pem = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
        self.accounts_key.write_bytes(pem)
        self.kubeconfig.write_text(json.dumps(self._kubeconfig(self.token)))

    def _kubeconfig(self, token: str) -> Object:
        named = {"name": "here"}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [named | {"cluster": {"server": self.url, "certificate-authority": str(self.certificate)}}],
            "users": [named | {"user": {"token": token}}],
            "contexts": [named | {"context": {"cluster": "here", "user": "here"}}],
            "current-context": "here",
        }


class ControllerManager(Processes):
    """The Kubernetes controllers beside an API server: Deployments, EndpointSlices, accounts, garbage collection.

    `options` are further flags of kube-controller-manager.
    """

    is_bound = True

    def __init__(self, server: ApiServer, options: Sequence[str] = ()) -> None:
        super().__init__(server.folder)
        self.server = server
        self._options = options
        self._program = find("kube-controller-manager")

    def start(self) -> None:
        """Start the controllers, and wait until the namespace `default` has its account."""
        self.run(
            [
                *(self._program, f"--kubeconfig={self.server.kubeconfig}", "--leader-elect=false"),
                *("--secure-port=0", "--use-service-account-credentials=false", "--profiling=false"),
                *(f"--service-account-private-key-file={self.server.accounts_key}",),
                *(f"--root-ca-file={self.server.certificate}", "--endpointslice-updates-batch-period=0"),
                *self._options,
            ]
        )
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self.wait_until(lambda: self.server.request("GET", account)[0] == 200)
