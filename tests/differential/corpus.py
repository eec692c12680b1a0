"""Requests with every trick of the attacks, a few for each caller and port."""

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
    """Yield for some callers and every port a few requests with one or two tricks, and bytes that are not HTTP."""
    random = Random(seed)  # noqa: S311 - it chooses what to test
    for caller in random.sample(CALLERS, callers):
        for pod in PODS:
            for port in PORTS:
                for _ in range(requests):
                    yield Ask(caller, pod, port, request(random))
                if random.random() < 0.4:
                    yield Ask(caller, pod, port, None)


def request(random: Random) -> Http:
    """Return a request of any version, with a path, hosts and headers of attacks."""
    target, version = targets(random), versions(random)
    host = hosts(random) if target.isascii() else random.choice(PLAIN)  # a request that is not HTTP has no host
    chosen = (*headers(random), *connections(random))
    if version == HTTP_2:  # without headers about connections, which the attacks test
        chosen = tuple(one for one in chosen if one[0].lower() not in _OF_HTTP_1)
    elif target.isascii() and random.random() < 0.05:
        chosen = (*chosen, ("host", random.choice([host, hosts(random)])))
    query = "" if "#" in target or "?" in target else queries(random)
    return Http(random.choice(METHODS), target + query, host, chosen, version)
