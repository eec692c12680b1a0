"""Asks the external authorizers of policies, over HTTP or Envoy's gRPC protocol.

The policy states the protocol (`ExternalAuthorizer`, Gateway API's HTTPExternalAuthFilter). The code that creates
`ExternalAuthorizers` supplies the addresses. Only a complete and positive answer in time allows. Everything else
denies.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from eastgate.control.authorizer.external_clients import (
    AuthorizerRequest,
    CallDenied,
    CallLimits,
    ServiceClient,
    client_of,
)
from eastgate.control.authorizer.external_http import ExchangeFailed, ServiceAddress
from eastgate.envoy.authz.client import CheckFailed
from eastgate.ir import AuthorizerName, ExternalAuthorizer, Refusal, Ruling

__all__ = ["AddressOf", "ExternalAuthorizers", "ServiceAddress"]

AddressOf = Callable[[ExternalAuthorizer], ServiceAddress | None]
"""A function that returns the address of an authorizer, or None if it is unknown."""

_MAX_CLIENTS: Final = 256


class ExternalAuthorizers:
    """The clients of external authorizers. Each call takes at most `seconds`; each authorizer has `in_flight` calls at
    a time.

    Threads may share it. An answer with more than `max_bytes` of headers or of body counts as no answer.
    """

    def __init__(
        self, address_of: AddressOf, *, seconds: float = 5.0, max_bytes: int = 64 * 1024, in_flight: int = 256
    ) -> None:
        self._address_of = address_of
        self._limits = CallLimits(seconds, max_bytes, in_flight)
        self._clients: OrderedDict[ExternalAuthorizer, ServiceClient] = OrderedDict()
        self._lock = threading.Lock()

    def ask(self, name: str, check: AuthorizerRequest) -> Ruling:
        """Ask the authorizer that a policy names, once. Every failure denies; none is raised."""
        deadline = time.monotonic() + self._limits.seconds
        try:
            if not isinstance(name, AuthorizerName):
                raise CallDenied("its protocol is unknown")
            client = self._client(name.external)
            try:
                return client.ask(check, deadline)
            finally:
                client.leave()
        except CallDenied as denied:
            return denied.ruling
        except (ExchangeFailed, CheckFailed) as failed:
            return Ruling(False, Refusal.FORBIDDEN, str(failed))
        except Exception as error:  # without an answer, nothing is allowed
            return Ruling(False, Refusal.FORBIDDEN, f"the call failed: {type(error).__name__}")

    def close(self) -> None:
        """Close all connections, each after its last call."""
        with self._lock:
            clients, self._clients = list(self._clients.values()), OrderedDict()
        for client in clients:
            client.retire()

    def _client(self, external: ExternalAuthorizer) -> ServiceClient:
        """Return the client of an authorizer. The caller must call `leave` on it."""
        address = self._address_of(external)
        if address is None:
            raise CallDenied("its address is unknown")
        retired: list[ServiceClient] = []
        with self._lock:
            client = self._clients.get(external)
            if client is None or client.address != address:
                if client is not None:
                    retired.append(client)
                client = self._clients[external] = client_of(external, address, self._limits)
            self._clients.move_to_end(external)
            while len(self._clients) > _MAX_CLIENTS:
                retired.append(self._clients.popitem(last=False)[1])
            client.enter()
        for old in retired:
            old.retire()
        return client
