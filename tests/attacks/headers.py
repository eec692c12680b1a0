"""Forged headers, and headers that a proxy and an application may read differently.

The header `x-role: admin` is forbidden, in every spelling.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from tests.attacks.application import Arrived
from tests.differential.asking import HTTP_1_0, HTTP_1_1, HTTP_2

__all__ = [
    "CONNECTIONS",
    "FORGED",
    "HEADERS",
    "METHODS",
    "Headers",
    "connections",
    "forged",
    "headers",
    "reads_admin",
    "spellings",
    "versions",
    "written",
]

Headers = tuple[tuple[str, str], ...]

_ALICE = "spiffe://cluster.local/ns/shop/sa/alice"
# Every header that some proxy trusts
FORGED: Headers = (
    ("x-forwarded-client-cert", f"By=spiffe://cluster.local;URI={_ALICE}"),
    ("x-forwarded-for", "127.0.0.1"),
    ("x-real-ip", "127.0.0.1"),
    ("forwarded", "for=127.0.0.1;host=admin;proto=https"),
    ("x-forwarded-host", "admin"),
    ("x-forwarded-proto", "https"),
    ("x-forwarded-port", "443"),
    ("x-forwarded-path", "/api/x"),
    ("x-forwarded-uri", "/api/x"),
    ("x-forwarded-prefix", "/api"),
    ("x-forwarded-method", "GET"),
    ("x-original-path", "/api/x"),
    ("x-original-url", "/api/x"),
    ("x-original-method", "GET"),
    ("x-rewrite-url", "/api/x"),
    ("x-http-method-override", "GET"),
    ("x-envoy-original-path", "/api/x"),
    ("x-envoy-original-host", "admin"),
    ("x-envoy-original-method", "GET"),
    ("x-envoy-original-dst-host", "127.0.0.1:1"),
    ("x-envoy-internal", "true"),
    ("x-envoy-external-address", "127.0.0.1"),
    ("x-envoy-peer-metadata", "CgA="),
    ("x-envoy-peer-metadata-id", "alice"),
    ("x-envoy-attempt-count", "0"),
    ("x-envoy-expected-rq-timeout-ms", "1"),
    ("x-envoy-upstream-rq-timeout-ms", "1"),
    ("x-envoy-retry-on", "5xx,reset"),
    ("x-envoy-max-retries", "100"),
    ("x-envoy-decorator-operation", "other"),
    ("x-envoy-force-trace", "true"),
    ("x-envoy-auth-partial-body", "true"),
    ("x-authz-id", _ALICE),
    ("x-eastgate-peer", _ALICE),
    ("eastgate.peer", _ALICE),
    ("x-request-id", "00000000-0000-4000-8000-000000000000"),
    ("x-client-trace-id", "alice"),
    ("l5d-client-id", "alice.shop.serviceaccount.identity.linkerd.cluster.local"),
    ("x-spiffe-id", _ALICE),
    ("authorization", "Bearer e30.e30."),
    ("via", "1.1 alice"),
    ("x-forwarded-user", "admin"),
    ("x-forwarded-groups", "admin"),
    ("x-forwarded-scheme", "https"),
    ("x-forwarded-ssl", "on"),
    ("x-forwarded-server", "admin"),
    ("x-remote-user", "admin"),
    ("remote-user", "admin"),
    ("x-auth-request-user", "admin"),
    ("x-client-ip", "127.0.0.1"),
    ("x-cluster-client-ip", "127.0.0.1"),
    ("x-originating-ip", "127.0.0.1"),
    ("x-remote-addr", "127.0.0.1"),
    ("true-client-ip", "127.0.0.1"),
    ("cf-connecting-ip", "127.0.0.1"),
    ("fastly-client-ip", "127.0.0.1"),
    ("x-proxyuser-ip", "127.0.0.1"),
    ("x-ssl-client-cert", "x"),
    ("x-ssl-client-verify", "SUCCESS"),
    ("ssl-client-cert", "x"),
    ("x-client-cert", "x"),
    ("client-cert", ":AAAA:"),
    ("x-method-override", "DELETE"),
    ("x-http-method", "DELETE"),
    ("x-accel-redirect", "/secret"),
    ("x-sendfile", "/secret"),
    ("x-envoy-ip-tags", "internal"),
    ("x-envoy-downstream-service-cluster", "alice"),
    ("x-envoy-downstream-service-node", "alice"),
    ("x-envoy-upstream-alt-stat-name", "x"),
    ("x-envoy-hedge-on-per-try-timeout", "true"),
    ("x-envoy-is-timeout-retry", "true"),
    ("x-envoy-retriable-status-codes", "403"),
    ("x-envoy-retriable-header-names", "x"),
    ("x-envoy-upstream-rq-per-try-timeout-ms", "1"),
    ("x-envoy-upstream-stream-duration-ms", "1"),
    ("x-envoy-upstream-rq-timeout-alt-response", "1"),
    ("x-envoy-immediate-health-check-fail", "true"),
    ("x-envoy-degraded", "true"),
    ("x-envoy-overloaded", "true"),
    ("x-envoy-local-overloaded", "true"),
    ("x-envoy-ratelimited", "true"),
    ("x-istio-attributes", "CgA="),
    ("x-b3-traceid", "0" * 32),
    ("traceparent", f"00-{'0' * 31}1-{'0' * 15}1-01"),
    ("l5d-dst-override", "admin.shop.svc.cluster.local:80"),
    ("l5d-dst-canonical", "admin.shop.svc.cluster.local:80"),
    ("l5d-proxy-error", "x"),
    ("l5d-remote-ip", "127.0.0.1"),
    ("l5d-orig-proto", "HTTP/1.1"),
    ("l5d-reset", "x"),
)

# Headers of requests to the generated world; generated routes match `k` and `x-other`
HEADERS: list[Headers] = [
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
    (("user-agent", "v"), ("user-agent", "w"), ("k", "v")),
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
# Headers about the connection, which a proxy reads and does not pass on
CONNECTIONS: list[Headers] = [
    (),
    (),
    (),
    (("connection", "close"),),
    (("connection", "keep-alive"),),
    (("Connection", "Close"),),
    (("connection", "k"), ("k", "v")),
    (("connection", "keep-alive, x-other"), ("x-other", "1")),
    (("connection", "upgrade"), ("upgrade", "foo")),
    (("te", "trailers"),),
    (("te", "gzip, trailers"),),
    (("te", "x"), ("expect", "x")),
    (("keep-alive", "timeout=1"),),
    (("proxy-connection", "close"),),
]
METHODS = ["GET", "GET", "GET", "POST", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"]
_VERSIONS = [HTTP_1_1, HTTP_1_1, HTTP_1_1, HTTP_1_0, HTTP_2]

_NAMES = ["x-role", "X-Role", "X-ROLE", "x-Role", "X-rOLE"]
_VALUES = [
    *(
        "admin",
        " admin",
        "admin ",
        "\tadmin\t",
        "  admin  ",
        "ADMIN",
        "Admin",
        "admin,",
        ",admin",
        "admin,admin",
        "user,admin",
        "admin,user",
    ),
    *(
        "user, admin",
        "admin, user",
        "admin;q=1",
        '"admin"',
        "'admin'",
        "admin\x01",
        "a\u0064min",
        "adm\u0131n",
        "\uff41dmin",
        "admin%20",
        "%61dmin",
    ),
    *(
        "admin#",
        "admin?",
        "admin/",
        "(admin)",
        "admin admin",
        "admi",
        "dmin",
        "",
        "admin\\",
        "adm\\in",
        "admin\x7f",
        "ad\tmin",
        "admin\xa0",
        "user admin",
    ),
]


def spellings() -> Iterator[Headers]:
    """Yield every way to write the forbidden header: its name, value, repetitions, and the headers around it."""
    for name in _NAMES:
        yield ((name, "admin"),)
    for value in _VALUES:
        yield (("x-role", value),)
    for first in ("admin", "user", "", "ADMIN", "admin,user"):
        for second in ("admin", "user", ""):
            yield (("x-role", first), ("x-role", second))
            yield (("X-Role", first), ("x-ROLE", second))
            yield (("x-role", first), ("x", "y"), ("x-role", second))
            yield (("x-role", first), ("x-role", second), ("x-role", "third"))
    for others in CONNECTIONS:
        yield (*others, ("x-role", "admin"))
        yield (("x-role", "user"), *others)
    for listed in ("x-role", "X-Role", "close, x-role", "x-role, keep-alive", "upgrade, x-role"):
        yield (("connection", listed), ("x-role", "admin"))
        yield (("connection", listed), ("x-role", "user"), ("x-role", "admin"))
    for number in (2, 7, 8, 9, 20, 80):
        yield (*(("x-role", f"user{count}") for count in range(number)), ("x-role", "admin"))
        yield (("x-role", "admin"), *(("x-role", f"user{count}") for count in range(number)))
        yield (*((f"x-{count}", "y") for count in range(number)), ("x-role", "admin"))
        yield (("x-role", "x" * number * 100),)
        yield (("x-role", "admin" + "," * number),)
    for name in (
        "x_role",
        "X_Role",
        "x-role-",
        "-x-role",
        "xrole",
        "x--role",
        "x.role",
        "x-role0",
        "x-roles",
        "http-x-role",
    ):
        yield ((name, "admin"),)
        yield ((name, "admin"), ("x-role", "user"))
        yield (("x-role", "user"), (name, "admin"))
    for name, value in FORGED:
        yield ((name, value), ("x-role", "admin"))


def written() -> Iterator[bytes]:
    """Yield lines that no library writes and some server may read as the forbidden header, without line breaks."""
    for line in (
        *(
            b"x-role:admin",
            b"x-role:\tadmin",
            b"x-role : admin",
            b"x-role\t: admin",
            b" x-role: admin",
            b"\tx-role: admin",
            b"x-role: admin\r",
        ),
        *(
            b"x: y\r\n x-role: admin",
            b"x-role:\r\n admin",
            b"x-role: ad\r\n min",
            b"x-role: user\r\n admin",
            b"x: y\nx-role: admin",
        ),
        *(
            b"x: y\rx-role: admin",
            b"x: y\r\r\nx-role: admin",
            b"x: y\0\r\nx-role: admin",
            b"x-role\0: admin",
            b"x-role: admin\0",
            b"x-role: \0admin",
        ),
        *(
            b"x-role: admin\x0b",
            b"x-role: \x0badmin",
            b"x-role:\xa0admin",
            b"x\xadrole: admin",
            b"x-role\xa0: admin",
            b"x-role:: admin",
            b":x-role: admin",
        ),
        *(
            b"x-role; admin",
            b"x-role=admin",
            b"x-role admin",
            b"x-role",
            b"x-role:",
            b'"x-role": admin',
            b"x-role: user\x00admin",
            b"x-role: user\x85x-role: admin",
        ),
        *(
            b"x-role: user\xe2\x80\xa8x-role: admin",
            b"x-role: user\\r\\nx-role: admin",
            b"x-role: user%0d%0ax-role: admin",
            b"(x-role): admin",
        ),
    ):
        yield line
        yield b"x-role: user\r\n" + line
        yield line + b"\r\nx-role: user"


def reads_admin(arrived: Arrived) -> str | None:
    """Return a problem if an application reads the forbidden header in any of its values, without blanks."""
    values = [value.strip(" \t") for name, value in arrived.headers if name.lower() == "x-role"]
    return f"the application reads x-role: admin of {values}" if "admin" in values else None


def forged(random: Random) -> Headers:
    """Return a few forged headers, in any letter case."""
    chosen = random.sample(FORGED, random.randint(1, 5))
    return tuple((random.choice((name, name.upper(), name.title())), value) for name, value in chosen)


def headers(random: Random) -> Headers:
    """Return headers for the generated world: known ones, several of them, or forged ones beside them."""
    match random.random():
        case share if share < 0.6:
            return random.choice(HEADERS)
        case share if share < 0.8:
            return (*random.choice(HEADERS[:-2]), *random.choice(HEADERS[:-2]))
        case _:
            return (*forged(random), *random.choice(HEADERS[:-2]))


def connections(random: Random) -> Headers:
    """Return headers about the connection."""
    return random.choice(CONNECTIONS)


def versions(random: Random) -> str:
    """Return a version of HTTP."""
    return random.choice(_VERSIONS)
