"""Requests with every trick that is known, a few for each caller and port."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from tests.differential.asking import Ask, Http
from tests.differential.world import CALLERS, PODS, PORTS

__all__ = ["HEADERS", "HOSTS", "METHODS", "QUERIES", "TARGETS", "asks"]

TARGETS = [
    *("/", "/a", "/a/b", "/api", "/api/1", "/x.png", "/live", "/A", "/a/", "/a/b/c", "/ab", "/b"),  # plain
    *("/a/../b", "/a/./b", "/./a", "/a/..", "/..", "/.", "/a/.", "/a/b/..", "/../a", "/a/...", "/..a", "/a/x/../b"),
    *("/a/%2e%2e/b", "/%2e/a", "/.%2E/a", "/a/%2e", "/%2e%2e/%2e%2e/a", "/a%2e%2e/b"),  # dots in disguise
    *("/a%2fb", "/a%2Fb", "/api/..%2fa", "/a%5cb", "/a%5Cb", "/%2f", "/a/%2e%2e%2fb", "/a%252fb", "/a%25%32%66b"),
    *("/a\\b", "/\\a", "/a\\..\\b", "/a/..\\b", "//a", "//", "///", "/a//b", "/a//", "/a//../b", "//api///1"),
    *("/a;b", "/a;b/c", "/a/;x/b", "/a;b=1", "/;", "/a%3bb", "/a/..;/b", "/.;/a", "/a/%2e%2e;/b"),  # parameters
    *("/%61", "/%61/%62", "/%41", "/%7E", "/%5f", "/a%20b", "/%zz", "/a%", "/a%2", "/%C3%A9", "/%c3%a9", "/+", "/a+b"),
    *(
        "/a%0ab",
        "/a%0d%0ab",
        "/a%09b",
        "/a%3f",
        "/a%23",
        "/%u002e/",
        "/%252e%252e/a",
        "/a!$&'()*,:=@b",
        "/.*",
        "/a/b#c",
        '/a"b',
        "/{a}",
        "/a|b",
    ),
    *("/@me", "/%40me", "/a:b", "/a%3ab", "/a%3Ab", "/%24m", "/$m", "/caf%c3%a9", "/caf%C3%A9/x", "/[a]", "/%5ba%5D"),
    *("/a%3Bb", "/a%7cb", "/x%2a", "/x%3data", "/x=ata", "/x%40", "/%2540me", "/%%34%30me", "/a/..;\\b", "/a/..%3b/b"),
    *("/a%3A/../b", "/%2A", "/*", "/a%21", "/a/%c3", "/a/%c3%28", "/a%2Cb", "/%C3%a9", "/a%3b/b"),
    *("/a%00b", "/a#b", "/a/b.png", "/.png", "/api/", "/api/%2e%2e/a", "/API", "/é", "/a/\u00e9"),
]
QUERIES = [
    *(
        "",
        "",
        "",
        "?",
        "?k=v",
        "?k=w",
        "?k=v&k=w",
        "?k=w&k=v",
        "?K=v",
        "?k=%76",
        "?%6b=v",
        "?k=",
        "?k",
        "?k=v+w",
        "?k=v%20w",
    ),
    *(
        "?k=v%2Bw",
        "?a=/../b",
        "?k=v&other=1",
        "?&&k=v",
        "?k==v",
        "?k=a=b",
        "?k=a%3Db",
        "?k=%C3%A9",
        "?k=%c3%a9",
        "?k=v;k=w",
    ),
    *(
        "??k=v",
        "?/a",
        "?k=%zz",
        "?k=%0a",
        "?k=%26",
        "?k=v%",
        "?k=%2f",
        "?k[]=v",
        "?k=v#x",
        "?other=1&k=v",
        "?k=+",
        "?+k=v",
        "?k=w&k=w&k=v",
        "?k=x&k=y",
        "?k=&k=v",
        "?" + "&".join(f"k={number}" for number in range(12)),
        "?k=%E9&k=%F0%9F",
        "?k=%C3&k",
        "?%C3%A9=v&k=v%20w",
    ),
]
HOSTS = [
    *(
        "h",
        "h",
        "h",
        "H",
        "a.h",
        "A.H",
        "b.a.h",
        "h:80",
        "h.",
        "H.:80",
        "a.h.:8080",
        "other",
        ".h",
        "xh",
        "h..",
        "h:080",
    ),
    *(
        "[::1]",
        "[::1]:80",
        "127.0.0.1",
        "127.0.0.1:80",
        "a@h",
        "h,i",
        "*.h",
        "h%2e",
        "-",
        "h_h",
        "a.h:99999",
        "h:abc",
        "h:",
        "h:80:80",
        "[h",
        "h:65535",
        "h:65536",
        "h:4294967296",
        "h:+80",
        "a.h:0",
        "a.h.",
        "[::1]:99999",
        "[::ffff:1.2.3.4]",
        "[1::2::3]",
        "",
        ".",
    ),
]
HEADERS: list[tuple[tuple[str, str], ...]] = [
    (),
    (),
    (("k", "v"),),
    (("K", "v"),),
    (("k", "V"),),
    (("k", "v"), ("k", "w")),
    (("k", "v"), ("K", "w"), ("x-other", "1")),
    (("k", "w"), ("k", "v")),
    (("k", "v"), ("k", "v")),
    (("k", ""), ("k", "v")),
    (("k", "w"), ("x-other", "1"), ("k", "v,w"), ("x-other", "2")),
    (("k", "vw"), ("k", "wv")),
    tuple(("k", str(number)) for number in range(12)),
    (("connection", "k"), ("k", "v")),
    (("connection", "keep-alive, x-other"), ("k", "v"), ("x-other", "1")),
    (("user-agent", "v"), ("user-agent", "w"), ("k", "v")),
    (("te", "trailers"), ("expect", "x"), ("k", "w")),
    (("k", ""),),
    (("k", " v "),),
    (("k", "v,w"),),
    (("k", "v, w"),),
    (("X-Other", "1"),),
    (("x-envoy-original-path", "/a"), ("x-forwarded-for", "127.0.0.1")),
    (("x-forwarded-client-cert", "URI=spiffe://td/ns/a/sa/x"), ("x-forwarded-host", "h")),
    (("x-http-method-override", "POST"), ("x-original-url", "/a"), ("x-rewrite-url", "/a")),
    (("content-length", "0"),),
    (("k", "v" * 2000),),
]
METHODS = ["GET", "GET", "GET", "POST", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"]


def asks(seed: int, callers: int, requests: int) -> Iterator[Ask]:
    """For some callers, on every port: a few requests with a trick or two each, and bytes that are no HTTP."""
    random = Random(seed)  # noqa: S311 - it chooses what to test
    for caller in random.sample(CALLERS, callers):
        for pod in PODS:
            for port in PORTS:
                for _ in range(requests):
                    yield Ask(caller, pod, port, _http(random))
                if random.random() < 0.4:
                    yield Ask(caller, pod, port, None)


def _http(random: Random) -> Http:
    plain = random.random() < 0.3
    target = random.choice(TARGETS[:12] if plain else TARGETS)
    return Http(
        random.choice(METHODS),
        target + ("" if "#" in target else random.choice(QUERIES)),
        random.choice(HOSTS[:6] if plain or not target.isascii() else HOSTS),  # whose bytes are not HTTP has no host
        random.choice(HEADERS),
    )
