"""A real Envoy with an SVID, which verifies its callers with the bundles of two trust domains."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from eastgate.control.identity import EmbeddedCa, Svid, client_context, verify_connection
from eastgate.control.identity.certificates import Period, key_pem, new_key, new_leaf
from eastgate.control.identity.storage import write_private
from tests.patience import PATIENCE

WEB, DB = "spiffe://cluster.local/ns/shop/sa/web", "spiffe://cluster.local/ns/shop/sa/db"
PARTNER = "spiffe://partner.example/ns/shop/sa/web"
HERE, THERE = EmbeddedCa("cluster.local"), EmbeddedCa("partner.example")
HERE.federate("partner.example", THERE.bundles.of_domain("partner.example"))
TYPES = "type.googleapis.com/envoy.extensions"


def configuration(folder: Path, port: int) -> dict[str, object]:
    svid = HERE.issue(DB)
    both = {"filename": str(write_private(folder, "svid.pem", (svid.chain + svid.private_key).encode()))}
    validator = {
        "@type": f"{TYPES}.transport_sockets.tls.v3.SPIFFECertValidatorConfig",
        "trust_domains": [
            {"name": name, "trust_bundle": {"inline_string": HERE.bundles.pem(name)}}
            for name in HERE.bundles.trust_domains
        ],
    }
    tls = {
        "@type": f"{TYPES}.transport_sockets.tls.v3.DownstreamTlsContext",
        "require_client_certificate": True,
        "common_tls_context": {
            "tls_certificates": [{"certificate_chain": both, "private_key": both}],
            "validation_context": {
                "custom_validator_config": {"name": "envoy.tls.cert_validator.spiffe", "typed_config": validator}
            },
        },
    }
    hello = {"match": {"prefix": "/"}, "direct_response": {"status": 200, "body": {"inline_string": "hello"}}}
    http = {
        "@type": f"{TYPES}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "in",
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [hello]}]},
        "http_filters": [
            {"name": "router", "typed_config": {"@type": f"{TYPES}.filters.http.router.v3.Router"}},
        ],
    }
    chain = {
        "transport_socket": {"name": "tls", "typed_config": tls},
        "filters": [{"name": "http", "typed_config": http}],
    }
    address = {"socket_address": {"address": "127.0.0.1", "port_value": port}}
    return {"static_resources": {"listeners": [{"name": "in", "address": address, "filter_chains": [chain]}]}}


@pytest.fixture(scope="module")
def envoy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    folder = tmp_path_factory.mktemp("envoy")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    config, log = folder / "envoy.json", folder / "envoy.log"
    config.write_text(json.dumps(configuration(folder / "keys", port)))
    command = [str(Path(sys.executable).parent / "envoy"), "--concurrency", "1", "--use-dynamic-base-id", "-l", "warn"]
    with log.open("wb") as output:
        process = subprocess.Popen([*command, "-c", str(config)], stdout=output, stderr=output)
    try:
        end = time.monotonic() + PATIENCE
        while True:
            assert process.poll() is None, log.read_text()[-2000:]
            assert time.monotonic() < end, "Envoy did not start"
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE)


def greeting(port: int, caller: Svid) -> tuple[str, bytes]:
    context = client_context(caller, HERE.bundles)
    with (
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as raw,
        context.wrap_socket(raw) as connection,
    ):
        server = verify_connection(connection, HERE.bundles)
        connection.sendall(b"GET / HTTP/1.1\r\nHost: db\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: connection.recv(4096), b""))
        return server, answer.rpartition(b"\r\n\r\n")[2]


@pytest.mark.parametrize(("authority", "identity"), [(HERE, WEB), (THERE, PARTNER)])
def test_envoy_and_our_svids_accept_each_other(envoy: int, authority: EmbeddedCa, identity: str) -> None:
    assert greeting(envoy, authority.issue(identity)) == (DB, b"hello")


def test_envoy_takes_the_new_intermediate_and_not_another_root(envoy: int) -> None:
    HERE.roll_intermediate()
    assert greeting(envoy, HERE.issue(WEB)) == (DB, b"hello")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        greeting(envoy, EmbeddedCa("cluster.local").issue(WEB))


def test_envoy_rejects_own_identities_that_a_partner_signed(envoy: int) -> None:
    signer, key = THERE._state.intermediate, new_key()
    start = signer.certificate.not_valid_before_utc
    certificate = new_leaf(WEB, (), key.public_key(), signer, Period(start, start + timedelta(hours=1)))
    chain = certificate.public_bytes(Encoding.PEM).decode() + signer.pem
    with pytest.raises((ssl.SSLError, ConnectionError)):
        greeting(envoy, replace(THERE.issue(PARTNER), chain=chain, private_key=key_pem(key)))
