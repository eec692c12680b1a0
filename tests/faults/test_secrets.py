"""A proxy gets only its own secrets, and private keys are in no file, argument or environment."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from envoy.config.core.v3.base_pb2 import Node
from envoy.extensions.transport_sockets.tls.v3.secret_pb2 import Secret
from envoy.service.discovery.v3.discovery_pb2 import DeltaDiscoveryRequest

from eastgate.envoy.server.resources import LISTENER, SECRET
from tests.envoy.server.client import METHOD, Client
from tests.envoy.server.fake import request
from tests.faults.meshes import SERVER, running
from tests.faults.processes import descendants
from tests.faults.worlds import allow, sa, world

_OTHER = "shop/server1"
_BASE = [*world(servers=2), allow("all", "alice"), allow("api", "alice", paths=["/api/*"])]
_KEY = b"PRIVATE KEY"
_NOBODY_UID = 65534


async def refusal(address: str, node: str, token: str | None, type_url: str, *names: str) -> grpc.StatusCode:
    """Ask a control plane as Envoy does; return the status with which it refuses to answer.

    grpc.aio replaces the status of a server that refuses a call before it has read the message: the client that blocks
    does not.
    """

    def ask() -> grpc.StatusCode:
        metadata = (("authorization", f"Bearer {token}"),) if token is not None else ()
        with grpc.insecure_channel(address) as channel:
            method: Any = channel.stream_stream(METHOD, DeltaDiscoveryRequest.SerializeToString, None)
            call: Any = method(iter([request(type_url, *names, node=Node(id=node))]), metadata=metadata)
            next(call)
            raise AssertionError("it was answered")

    try:
        return await asyncio.to_thread(ask)
    except grpc.RpcError as error:
        code: grpc.StatusCode = error.code()
        return code


async def test_a_proxy_cannot_get_resources_of_another_proxy() -> None:
    async with running(*_BASE) as mesh:
        address = f"unix:{mesh.mesh.rundir.socket('control-plane')}"
        token = mesh.mesh.tokens.issue(SERVER)
        for node, with_token in ((_OTHER, token), (_OTHER, ""), (_OTHER, None), ("", token), (f"{SERVER}/", token)):
            refused = await refusal(address, node, with_token, SECRET, "svid", "trust")
            assert refused == grpc.StatusCode.UNAUTHENTICATED
        assert mesh.metric("eastgate_xds_refused_streams_total") == 5
        async with contextlib.AsyncExitStack() as stack:
            proxy = Client(address, SERVER, token)
            stack.push_async_callback(proxy.close)
            await proxy.say(SECRET, "svid")
            [resource] = (await proxy.hear()).resources
            chain = Secret.FromString(resource.resource.value).tls_certificate.certificate_chain.inline_bytes
            leaf = x509.load_pem_x509_certificates(chain)[0]
            names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            assert names.get_values_for_type(x509.UniformResourceIdentifier) == [sa("server")]
        assert (await mesh.call("alice", workload=_OTHER)).status == 200


async def test_a_token_is_worth_nothing_after_its_proxy_was_started_again() -> None:
    async with running(*_BASE) as mesh:
        token = mesh.mesh.tokens.issue(SERVER)
        mesh.mesh.tokens.issue(SERVER)
        address = f"unix:{mesh.mesh.rundir.socket('control-plane')}"
        assert await refusal(address, SERVER, token, LISTENER) == grpc.StatusCode.UNAUTHENTICATED


async def test_no_other_user_can_enter_the_folder_of_a_mesh(runtime: Path) -> None:
    async with running(*_BASE) as mesh:
        folder = mesh.mesh.rundir.path
        assert folder.is_relative_to(runtime)
        for path in (folder.parent, folder):
            assert stat.S_IMODE(path.stat().st_mode) == 0o700
        sockets = [path for path in folder.iterdir() if stat.S_ISSOCK(path.lstat().st_mode)]
        assert len(sockets) >= 5
        if os.geteuid() == 0:  # root can switch to another user
            runtime.chmod(0o755)
            os.seteuid(_NOBODY_UID)
            try:
                for path in sockets:
                    with socket.socket(socket.AF_UNIX) as client, pytest.raises(PermissionError):
                        client.connect(str(path))
            finally:
                os.seteuid(0)


async def test_keys_are_in_no_file_no_argument_and_no_environment(runtime: Path) -> None:
    others = set(descendants(os.getpid()))  # processes of other tests' meshes
    async with running(*_BASE) as mesh:
        assert (await mesh.call("alice", workload=_OTHER)).status == 200
        token = mesh.mesh.tokens.issue(SERVER).encode()
        processes = [pid for pid in descendants(os.getpid()) if pid not in others]
        assert {Path(f"/proc/{pid}/comm").read_text().strip() for pid in processes} >= {"envoy"}
        assert len(processes) >= 3  # two Envoys and the reaper
        for pid in (*processes, os.getpid()):
            for place in ("cmdline", "environ"):
                held = Path(f"/proc/{pid}/{place}").read_bytes()
                assert _KEY not in held
                assert b"Bearer" not in held
        for path in (one for one in runtime.rglob("*") if one.is_file()):
            assert _KEY not in path.read_bytes()
            assert token not in path.read_bytes()
        for pid in processes:
            files = [os.readlink(f"/proc/{pid}/fd/{number}") for number in os.listdir(f"/proc/{pid}/fd")]
            on_disk = [name for name in files if name.startswith("/") and not name.startswith(("/dev/", "/memfd:"))]
            assert set(on_disk) <= {str(mesh.mesh.rundir.path)}  # the reaper holds the lock of the folder
