"""A Workload API with configured answers: a real gRPC server on a Unix socket, with SVIDs of a CA.

It plays the failures of a real agent: refusals, ended streams, and restarts.
"""

from __future__ import annotations

import queue
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from spiffe._proto import workload_pb2, workload_pb2_grpc

from eastgate.control.identity import Svid, TrustBundles
from tests.patience import PATIENCE

REFUSE = "refuse"
END = "end"


class FakeAgent(workload_pb2_grpc.SpiffeWorkloadAPIServicer):
    """Serves configured answers. Each stream begins with the last answer; `push` sends a new one to open streams."""

    def __init__(self, socket: Path) -> None:
        self.streams = 0
        self._address = f"unix:{socket}"
        self._last: Any = REFUSE
        self._open: list[queue.Queue[Any]] = []
        self._server: grpc.Server | None = None

    def start(self) -> None:
        """Begin to listen."""
        self._server = grpc.server(ThreadPoolExecutor(4))
        workload_pb2_grpc.add_SpiffeWorkloadAPIServicer_to_server(self, self._server)  # type: ignore[no-untyped-call]
        self._server.add_insecure_port(self._address)
        self._server.start()

    def stop(self) -> None:
        """Stop at once, with open streams."""
        assert self._server is not None
        for stream in self._open:
            stream.put(END)
        self._server.stop(grace=None).wait(PATIENCE)

    def push(self, answer: object) -> None:
        """Send this answer on every stream, and first on future streams."""
        if answer != END:
            self._last = answer
        for stream in self._open:
            stream.put(answer)

    def FetchX509SVID(self, request: Any, context: grpc.ServicerContext) -> Iterator[Any]:  # noqa: N802, ARG002
        """Stream the answers: the method of the protocol."""
        self.streams += 1
        mine: queue.Queue[Any] = queue.Queue()
        mine.put(self._last)
        self._open.append(mine)
        while (answer := mine.get()) != END:
            if answer == REFUSE:
                context.abort(grpc.StatusCode.PERMISSION_DENIED, "no identity issued")
            yield answer


def answer(svids: list[Svid], bundles: TrustBundles, federated: Mapping[str, TrustBundles] | None = None) -> object:
    """Return an X509SVIDResponse."""
    given = [
        workload_pb2.X509SVID(
            spiffe_id=svid.identity,
            x509_svid=b"".join(
                one.public_bytes(Encoding.DER) for one in x509.load_pem_x509_certificates(svid.chain.encode())
            ),
            x509_svid_key=load_pem_private_key(svid.private_key.encode(), None).private_bytes(
                Encoding.DER, PrivateFormat.PKCS8, NoEncryption()
            ),
            bundle=_der(bundles),
        )
        for svid in svids
    ]
    others = {f"spiffe://{name}": _der(theirs) for name, theirs in (federated or {}).items()}
    return workload_pb2.X509SVIDResponse(svids=given, federated_bundles=others)


def _der(bundles: TrustBundles) -> bytes:
    return b"".join(root.public_bytes(Encoding.DER) for root in bundles.of_domain(bundles.own))
