"""Asks the external authorizers of policies: services that decide for themselves, by HTTP or by Envoy's gRPC protocol.

How each is asked is in its policy (`ExternalAuthorizer`, Gateway API's HTTPExternalAuthFilter); where it is reached,
the caller knows. Only an answer that is whole, in time and in favour allows. Everything else denies.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from eastgate.control.authorizer.external_clients import (
    AskedCheck,
    AskingDenied,
    AskingLimits,
    ServiceClient,
    client_of,
)
from eastgate.control.authorizer.external_http import ExchangeFailed, ServiceAddress
from eastgate.envoy.authz.client import CheckFailed
from eastgate.ir import AuthorizerName, ExternalAuthorizer, Refusal, Ruling

__all__ = ["AddressOf", "ExternalAuthorizers", "ServiceAddress"]

AddressOf = Callable[[ExternalAuthorizer], ServiceAddress | None]
"""Returns where an authorizer is reached; None where it is not."""

_MOST_CLIENTS: Final = 256


class ExternalAuthorizers:
    """Asks external authorizers, each within `seconds` in all, and `in_flight` questions at a time.

    Threads may share it. An answer of more than `max_bytes`, of its headers or of its body, counts as none.
    """

    def __init__(
        self, address_of: AddressOf, *, seconds: float = 5.0, max_bytes: int = 64 * 1024, in_flight: int = 256
    ) -> None:
        self._address_of = address_of
        self._limits = AskingLimits(seconds, max_bytes, in_flight)
        self._clients: OrderedDict[ExternalAuthorizer, ServiceClient] = OrderedDict()
        self._lock = threading.Lock()

    def ask(self, name: str, check: AskedCheck) -> Ruling:
        """Ask the authorizer that a policy names, once. Whatever goes wrong, it never raises, and denies."""
        deadline = time.monotonic() + self._limits.seconds
        try:
            if not isinstance(name, AuthorizerName):
                raise AskingDenied("how it is asked is not known")
            client = self._client(name.external)
            try:
                return client.ask(check, deadline)
            finally:
                client.leave()
        except AskingDenied as denied:
            return denied.ruling
        except (ExchangeFailed, CheckFailed) as failed:
            return Ruling(False, Refusal.FORBIDDEN, str(failed))
        except Exception as error:  # of whatever kind: nobody has consented
            return Ruling(False, Refusal.FORBIDDEN, f"asking it fails: {type(error).__name__}")

    def close(self) -> None:
        """Give all connections up, each once nobody waits on it."""
        with self._lock:
            clients, self._clients = list(self._clients.values()), OrderedDict()
        for client in clients:
            client.retire()

    def _client(self, external: ExternalAuthorizer) -> ServiceClient:
        """Return the client of an authorizer, which the caller has to leave."""
        address = self._address_of(external)
        if address is None:
            raise AskingDenied("nobody knows where it is")
        retired: list[ServiceClient] = []
        with self._lock:
            client = self._clients.get(external)
            if client is None or client.address != address:
                if client is not None:
                    retired.append(client)
                client = self._clients[external] = client_of(external, address, self._limits)
            self._clients.move_to_end(external)
            while len(self._clients) > _MOST_CLIENTS:
                retired.append(self._clients.popitem(last=False)[1])
            client.enter()
        for old in retired:
            old.retire()
        return client
