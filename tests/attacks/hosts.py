"""Spellings of a host that a proxy and an application may read differently. `admin.example` is forbidden."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

from tests.attacks.application import Arrived
from tests.differential.asking import HTTP_2, Http

__all__ = ["ADMIN", "HOSTS", "NO_HOSTS", "PLAIN", "hosts", "odd", "reads_admin", "repeated", "spellings"]

ADMIN = "admin.example"

# Hosts of requests to the generated world
PLAIN = ["h", "h", "h", "H", "a.h", "A.H"]
HOSTS = [
    *PLAIN,
    *("b.a.h", "h:80", "h.", "H.:80", "a.h.:8080", "other", ".h", "xh", "h..", "h:080", "[::1]", "[::1]:80"),
    *(
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
    ),
    *("h:65535", "h:65536", "h:4294967376", "h:+80", "h:-1", "h:0", "h:0x50", "u:p@h", "h/", "h?", "h#", "h h", "h\\"),
    *("[::1", "::1", "[::1%25lo]", "[h]", "h.:", "[::1]:", "[::1]h", "a..h", "xn--h", "h;", "h'", "h!", "h%00", "%68"),
    *("h:4294967296", "a.h:0", "a.h.", "[::1]:99999", "[::ffff:1.2.3.4]", "[1::2::3]", "", "."),
]
# Not a host with an optional port: no policy may decide about it
NO_HOSTS = [
    *(
        "{h}:",
        "{h}:+80",
        "{h}:-1",
        "{h}:abc",
        "{h}:80:80",
        "{h}:65536",
        "{h}:99999",
        "{h}:4294967296",
        "{h}:18446744073709551696",
    ),
    *(
        "{h}: 80",
        "{h}:80a",
        "{h}:0x50",
        "{h}:8 0",
        "{h}:80.",
        "{h}.:",
        "{h}::80",
        "{h}:80,",
        "u@{h}",
        "u:p@{h}",
        "@{h}",
        "x@{h}:80",
    ),
    *(
        "{h}/",
        "{h}/x",
        "/{h}",
        "//{h}",
        "http://{h}",
        "http://{h}/",
        "{h}?x",
        "?{h}",
        "{h}#x",
        "#{h}",
        "{h}\\",
        "\\{h}",
        "{h} x",
        "x {h}",
    ),
    *(
        "{h}\tx",
        "{h},{h}",
        "{h}, {h}",
        "{h},x",
        "x,{h}",
        "{h};x",
        "{h}|x",
        "<{h}>",
        '"{h}"',
        "[{h}]",
        "[{h}",
        "{h}]",
        "[]",
        "[::1",
        "::1",
    ),
    *("[::1]x", "[::1]:", "[::1]:+1", "[::1]:65536", "[::g]", "{h}^", "{h}`", "{{{h}}}", "{h}%", "{h}%zz", "{h}%2"),
]
# Possible hosts that some readers read as the forbidden one
_ODD = [
    *(
        "{h}",
        "{h}:80",
        "{h}:0",
        "{h}:65535",
        "{h}:00080",
        "{h}.",
        "{h}.:80",
        "{h}..",
        ".{h}",
        "x.{h}",
        "{h}.x",
        "x{h}",
        "{h}x",
        "-{h}",
        "{h}-",
    ),
    *(
        "_{h}",
        "{h}_",
        "*.{h}",
        "*",
        "%61dmin.example",
        "admin%2eexample",
        "admin%2Eexample",
        "{h}%2e",
        "{h}%20",
        "{h}%00",
        "{h}%0a",
        "{h}%3a80",
    ),
    *(
        "{h}%2fx",
        "{h}%40x",
        "%2e{h}",
        "admin..example",
        "admin.example:080",
        "admin.example.:080",
        "xn--admin-.example",
        "xn--{h}",
    ),
    *(
        "127.0.0.1",
        "127.0.0.1:80",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::1%25lo]",
        "[fe80::1%lo]",
    ),
    *(
        "{h}!",
        "{h}$",
        "{h}&",
        "{h}'",
        "{h}(",
        "{h})",
        "{h}*",
        "{h}+",
        "{h}=",
        "{h}~",
        "!{h}",
        "admin,example",
        "admin;example",
        "admin'example",
    ),
    *("a" * 63 + ".example", "a" * 64 + ".example", "a." * 120 + "example", "a." * 130 + "example", "x" * 3000),
    *(
        "adm\u0131n.example",
        "\uff41dmin.example",
        "admin\u3002example",
        "admin\uff0eexample",
        "adm\u00edn.example",
        "admin\u200b.example",
    ),
    *("\u0430dmin.example", "admin.e\u00adxample", "admin.exampl\u212f", "\u24d0dmin.example"),
]


def _letter_cases(host: str) -> Iterator[str]:
    yield from (
        host,
        host.upper(),
        host.title(),
        host.swapcase(),
        "".join(c.upper() if n % 2 else c for n, c in enumerate(host)),
    )


def spellings() -> Iterator[tuple[str, bool]]:
    """Yield every spelling of the forbidden host, and whether it is invalid as a host."""
    for pattern in _ODD:
        for host in dict.fromkeys(pattern.format(h=one) for one in (ADMIN, ADMIN.upper())):
            yield host, False
    for host in _letter_cases(ADMIN):
        yield host, False
        yield f"{host}.:8080", False
    for pattern in NO_HOSTS:
        yield pattern.format(h=ADMIN), True
        yield pattern.format(h=ADMIN.upper()), True


def repeated() -> Iterator[Http]:
    """Yield requests with more than one host: several Host headers, or an absolute target with another host."""
    for first, second in (
        (ADMIN, "other"),
        ("other", ADMIN),
        (ADMIN, ADMIN),
        ("other", "other"),
        ("", ADMIN),
        (ADMIN, ""),
    ):
        for name in ("host", "Host", "HOST"):
            yield Http(target="/", host=first, headers=((name, second),))
        yield Http(target="/", host=first, headers=(("host", second),), version=HTTP_2)
        yield Http(target="/", host=first, headers=(("x", "y"), ("host", second), ("host", "third")))
    for scheme in ("http", "HTTP", "https"):
        for address in (ADMIN, f"{ADMIN}:80", f"{ADMIN}.", f"u@{ADMIN}", ADMIN.upper(), f"{ADMIN}:", f"{ADMIN}:+80"):
            yield Http(target=f"{scheme}://{address}/", host="other")
            yield Http(target=f"{scheme}://other/", host=address)
    for name in (
        "x-forwarded-host",
        "x-host",
        "forwarded",
        "x-original-host",
        "x-envoy-original-host",
        "x-http-host-override",
    ):
        yield Http(target="/", host="other", headers=((name, ADMIN),))
        yield Http(target="/", host=ADMIN, headers=((name, "other"),))


def reads_admin(arrived: Arrived) -> str | None:
    """Return a problem if an application reads the forbidden host: parsed as in a URL, and the first of several."""
    for host in arrived.hosts:
        for one in (host, *host.split(",")):
            name = one.strip(" \t").rpartition("@")[2]
            name = re.sub(r":[^\]]*$", "", name).lower().removesuffix(".")
            if name == ADMIN:
                return f"the application reads {ADMIN} in {host!r}"
    return None


def odd(seed: int, number: int) -> Iterator[str]:
    """Yield `number` random spellings of the forbidden host. Most are invalid as a host."""
    random = Random(seed)  # noqa: S311 - it chooses what to test
    for _ in range(number):
        host = random.choice(list(_letter_cases(ADMIN)))
        host = random.choice(_ODD[:40]).replace("{h}", host)
        yield random.choice([*NO_HOSTS, "{h}", "{h}"]).format(h=host)


def hosts(random: Random) -> str:
    """Return a host for the generated world."""
    return random.choice(PLAIN if random.random() < 0.4 else HOSTS)
