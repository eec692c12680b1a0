"""A real Envoy with the configuration of a control plane under test. It never outlives its test."""

from __future__ import annotations

import asyncio
import datetime
import http.client
import json
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from envoy.config.core.v3.extension_pb2 import TypedExtensionConfig
from envoy.config.listener.v3.listener_pb2 import Listener
from envoy.extensions.filters.http.rbac.v3.rbac_pb2 import RBAC
from envoy.extensions.transport_sockets.tls.v3.secret_pb2 import Secret
from envoy.type.matcher.v3.http_inputs_pb2 import HttpRequestHeaderMatchInput
from google.protobuf import json_format

from eastgate.envoy.config import typed  # it knows the types that plain configuration names
from eastgate.envoy.server import EXTENSION, LISTENER, SECRET, XdsResource
from eastgate.local.machine.envoy import find_envoy
from tests.patience import PATIENCE

TYPE = "type.googleapis.com/envoy."
ADS = typed.ADS


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _bootstrap(node: str, token: str, path: str) -> dict[str, Any]:
    service = {
        "envoy_grpc": {"cluster_name": "ads"},
        "initial_metadata": [{"key": "authorization", "value": f"Bearer {token}"}],
    }
    options = TYPE + "extensions.upstreams.http.v3.HttpProtocolOptions"
    endpoint = {"endpoint": {"address": {"pipe": {"path": path}}}}
    cluster = {
        "name": "ads",
        "type": "STATIC",
        "typed_extension_protocol_options": {
            options.rpartition("/")[2]: {"@type": options, "explicit_http_config": {"http2_protocol_options": {}}}
        },
        "load_assignment": {"cluster_name": "ads", "endpoints": [{"lb_endpoints": [endpoint]}]},
    }
    ads = {"api_type": "DELTA_GRPC", "transport_api_version": "V3", "grpc_services": [service]}
    return {
        "node": {"id": node, "cluster": "test"},
        "dynamic_resources": {"ads_config": ads, "lds_config": ADS, "cds_config": ADS},
        "static_resources": {"clusters": [cluster]},
    }


@contextmanager
def running(node: str, token: str, address: str) -> Iterator[subprocess.Popen[bytes]]:
    """Envoy, connected to this address, until the block ends for any reason."""
    path = address.removeprefix("unix:")
    config = Path(path).with_name("envoy.json")
    config.write_text(json.dumps(_bootstrap(node, token, path)), encoding="utf-8")
    command = [str(find_envoy()), "--disable-hot-restart", "--reject-unknown-dynamic-fields"]
    command += ["--concurrency", "1", "--log-level", "error", "-c", str(config)]
    if sys.platform == "linux" and (setpriv := shutil.which("setpriv")) is not None:
        command = [setpriv, "--pdeathsig", "KILL", "--", *command]  # even if the tests are killed
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait(PATIENCE)


def listener(
    name: str, port: int, body: str, *policies: str, extension: str = "rbac", bad: bool = False
) -> XdsResource:
    """A listener that answers with `body` over TLS, if the extension allows it. Envoy cannot build a bad one."""
    rbac = {"config_source": ADS, "type_urls": [TYPE + "extensions.filters.http.rbac.v3.RBAC"]}
    reply = {"match": {"prefix": "/"}, "direct_response": {"status": 200, "body": {"inline_string": body}}}
    host = {"name": "all", "domains": ["*"], "routes": [reply]}
    manager = {
        "@type": TYPE + "extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "test",
        "route_config": {"name": "routes", "virtual_hosts": [host, {**host, "name": "twin"}] if bad else [host]},
        "http_filters": [
            {"name": extension, "config_discovery": rbac},
            {"name": "router", "typed_config": {"@type": TYPE + "extensions.filters.http.router.v3.Router"}},
        ],
    }
    tls = {
        "@type": TYPE + "extensions.transport_sockets.tls.v3.DownstreamTlsContext",
        "common_tls_context": {"tls_certificate_sds_secret_configs": [{"name": "cert", "sds_config": ADS}]},
    }
    chain = {
        "filters": [{"name": "http", "typed_config": manager}],
        "transport_socket": {"name": "tls", "typed_config": tls},
    }
    address = {"socket_address": {"address": "127.0.0.1", "port_value": port}}
    made = json_format.ParseDict({"name": name, "address": address, "filter_chains": [chain]}, Listener())
    return XdsResource(LISTENER, name, made.SerializeToString(), frozenset(policies))


def rbac(action: str, *policies: str, name: str = "rbac") -> XdsResource:
    """An RBAC filter that allows all callers, or none; for the action BAD, one that Envoy rejects."""
    verdict = {"@type": f"{TYPE}config.rbac.v3.Action", "name": "p", "action": "DENY" if action == "DENY" else "ALLOW"}
    reached = {"action": {"name": "verdict", "typed_config": verdict}}
    matcher: dict[str, Any] = {"on_no_match": reached}
    if action == "BAD":
        path = {"@type": f"{TYPE[:-6]}{HttpRequestHeaderMatchInput.DESCRIPTOR.full_name}", "header_name": ":path"}
        regex = {"google_re2": {}, "regex": "("}
        broken = {"input": {"name": "path", "typed_config": path}, "value_match": {"safe_regex": regex}}
        matcher["matcher_list"] = {"matchers": [{"predicate": {"single_predicate": broken}, "on_match": reached}]}
    filtering = json_format.ParseDict({"matcher": matcher}, RBAC())
    made = TypedExtensionConfig(name=name)
    made.typed_config.Pack(filtering)
    return XdsResource(EXTENSION, name, made.SerializeToString(), frozenset(policies))


def certificate(common_name: str) -> XdsResource:
    """A key and a self-signed certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = Secret(name="cert")
    secret.tls_certificate.certificate_chain.inline_bytes = made.public_bytes(pem)
    secret.tls_certificate.private_key.inline_bytes = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return XdsResource(SECRET, "cert", secret.SerializeToString())


class Connection:
    """One open connection to Envoy."""

    def __init__(self, port: int) -> None:
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        self._port = port
        self._http = http.client.HTTPSConnection("127.0.0.1", port, timeout=PATIENCE, context=context)

    async def get(self) -> tuple[int, str]:
        return await asyncio.to_thread(self._get)

    def _get(self) -> tuple[int, str]:
        self._http.request("GET", "/")
        response = self._http.getresponse()
        return response.status, response.read().decode()

    def source(self) -> int:
        """The client's port: it identifies the connection."""
        port: int = self._http.sock.getsockname()[1]
        return port

    def subject(self) -> str:
        """The subject of the server's certificate."""
        shown = self._http.sock.getpeercert(binary_form=True)
        assert isinstance(shown, bytes)
        found = x509.load_der_x509_certificate(shown).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        return str(found[0].value)

    def close(self) -> None:
        self._http.close()
