"""Requests with every trick that attacks know, a few for each caller and port."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from tests.attacks.headers import METHODS, connections, headers, versions
from tests.attacks.hosts import PLAIN, hosts
from tests.attacks.paths import queries, targets
from tests.differential.asking import HTTP_2, Ask, Http
from tests.differential.world import CALLERS, PODS, PORTS

__all__ = ["asks", "request"]

_OF_HTTP_1 = {"connection", "keep-alive", "proxy-connection", "upgrade", "te"}


def asks(seed: int, callers: int, requests: int) -> Iterator[Ask]:
    """For some callers, on every port: a few requests with a trick or two each, and bytes that are no HTTP."""
    random = Random(seed)  # noqa: S311 - it chooses what to test
    for caller in random.sample(CALLERS, callers):
        for pod in PODS:
            for port in PORTS:
                for _ in range(requests):
                    yield Ask(caller, pod, port, request(random))
                if random.random() < 0.4:
                    yield Ask(caller, pod, port, None)


def request(random: Random) -> Http:
    """A request of any version, with a path, hosts and headers that attacks are made with."""
    target, version = targets(random), versions(random)
    host = hosts(random) if target.isascii() else random.choice(PLAIN)  # whose bytes are not HTTP has no host
    chosen = (*headers(random), *connections(random))
    if version == HTTP_2:  # which has no headers about connections; what comes of them is for attacks to tell
        chosen = tuple(one for one in chosen if one[0].lower() not in _OF_HTTP_1)
    elif target.isascii() and random.random() < 0.05:
        chosen = (*chosen, ("host", random.choice([host, hosts(random)])))
    query = "" if "#" in target or "?" in target else queries(random)
    return Http(random.choice(METHODS), target + query, host, chosen, version)
