"""Spellings of a path that a proxy and an application may read differently."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator
from random import Random
from urllib.parse import unquote

from tests.attacks.application import Arrived
from tests.attacks.trying import Reading

__all__ = [
    "DOTS_WITH_PARAMETERS",
    "NO_PATHS",
    "ODD",
    "PCHARS",
    "PLAIN",
    "QUERIES",
    "REFUSED",
    "TABLE",
    "TARGETS",
    "inside",
    "outside",
    "pchar_spellings",
    "queries",
    "read_as",
    "sneaked",
    "spelled",
    "spellings",
    "targets",
]

# A path and two expected statuses: if only /api/ is allowed, and if all but /api/private/ is allowed
TABLE: list[tuple[str, int, int]] = [
    ("/api/x", 200, 200),
    ("/api/x?y", 200, 200),
    ("/api/x?/../../admin", 200, 200),
    ("/api/x?p=/api/private/z", 200, 200),
    ("/admin", 403, 200),
    ("/admin?/api/x", 403, 200),
    ("/api/private/z", 200, 403),
    ("/apiary", 403, 200),
    ("/API/x", 403, 200),
    ("//api/x", 200, 200),
    ("///api////x", 200, 200),
    ("/%61pi/x", 200, 200),
    ("/%61%70%69/%70%72ivate/z", 200, 403),
    ("/api/./x", 200, 200),
    ("/api/%2e/private/z", 200, 403),
    ("/api/../admin", 403, 200),
    ("/api/%2e%2e/admin", 403, 200),
    ("/api/%2E./admin", 403, 200),
    ("/api/.%2e/admin", 403, 200),
    ("/api/x/../../admin", 403, 200),
    ("/admin/../api/private/z", 200, 403),
    ("/admin/%2e%2e/api/private/z", 200, 403),
    ("/api//private/z", 200, 403),
    ("/api/private//z", 200, 403),
    ("/api/./private/z", 200, 403),
    ("/api/%70rivate/z", 200, 403),
    ("/api/privat%65/z", 200, 403),
    ("/api/x/../private/z", 200, 403),
    ("/api/private/../x", 200, 200),
    ("/api\\private\\z", 200, 403),
    ("/api/x\\..\\..\\admin", 403, 200),
    ("/api/x\\..\\private\\z", 200, 403),
    ("/api%2fx", 400, 400),
    ("/api%2F..", 400, 400),
    ("/api/..%2fadmin", 400, 400),
    ("/api/%2e%2e%2fadmin", 400, 400),
    ("/api/%2fprivate/z", 400, 400),
    ("/api%2fprivate/z", 400, 400),
    ("/api/private%2fz", 400, 400),
    ("/api%5cprivate/z", 400, 400),
    ("/api/x%5c..%5c..%5cadmin", 400, 400),
]
# More paths, without expected statuses: proxy and engine must agree, and no private path may pass
ODD = [
    "/",
    "/api",
    "/api/",
    "/api/private",
    "/api/private/",
    "/api/private/.",
    "/api/private/..",
    "/api/%252fprivate/z",
    "/api/..%3b/private/z",
    "/api/%252e%252e/private/z",
    "/api;v=1/private/z",
    "/api/private;v=1/z",
    "/api/;/private/z",
    "/api/private%3bv=1/z",
    "/api/private%3f/z",
    "/api/private%23/z",
    "/api/private%20/z",
    "/api/private+/z",
    "/api/private./z",
    "/api/PRIVATE/z",
    "/api/x%3f/../private/z",
    "/api/x%23/../private/z",
    "/api/%",
    "/api/%7",
    "/api/%zz/../private/z",
    "/api/%u0070rivate/z",
    "/api/%c0%afprivate/z",
    "/api/%c0%ae%c0%ae/private/z",
    "/api/%ef%bc%8fprivate/z",
    "/api/%F0%9F%92%A9",
    "/../../api/private/z",
    "/..//..//api//private//z",
    "/./././api/./private/./z",
    "/api/" + "a/" * 500 + "../" * 500 + "private/z",
    "/api/" + "x" * 8000,
]
# Paths that a proxy refuses before it asks a policy
NO_PATHS = ["/api/privat\u0435/z", "/api/private#z", "/api#/private/z", "/api/x#/../private/z", "*", "api/x"]
# Segments with parameters that Envoy reads as dot segments
DOTS_WITH_PARAMETERS = [
    "/api/..;/admin",
    "/api/..;v=1/admin",
    "/x/..;/api/private/z",
    "/x/.;/../api/private/z",
    "/api/..;",
]
# Encoded forms that Envoy leaves unchanged: some servers, mainly of servlets, cut off parameters before dot segments
REFUSED = ["/api/%2e%2e;/admin", "/api/.%2e;v=1/admin", "/api/%2e;/x", "/api/x\\..;\\y"]

# Targets of requests to the generated world
PLAIN = ["/", "/a", "/a/b", "/api", "/api/1", "/x.png", "/live", "/A", "/a/", "/a/b/c", "/ab", "/b"]
TARGETS = [
    *PLAIN,
    *("/a/../b", "/a/./b", "/./a", "/a/..", "/..", "/.", "/a/.", "/a/b/..", "/../a", "/a/...", "/..a", "/a/x/../b"),
    *("/a/%2e%2e/b", "/%2e/a", "/.%2E/a", "/a/%2e", "/%2e%2e/%2e%2e/a", "/a%2e%2e/b"),  # encoded dots
    *("/a%2fb", "/a%2Fb", "/api/..%2fa", "/a%5cb", "/a%5Cb", "/%2f", "/a/%2e%2e%2fb", "/a%252fb", "/a%25%32%66b"),
    *("/a\\b", "/\\a", "/a\\..\\b", "/a/..\\b", "//a", "//", "///", "/a//b", "/a//", "/a//../b", "//api///1"),
    *("/a;b", "/a;b/c", "/a/;x/b", "/a;b=1", "/;", "/a%3bb", "/a/..;/b", "/.;/a", "/a/%2e%2e;/b"),  # parameters
    *("/%61", "/%61/%62", "/%41", "/%7E", "/%5f", "/a%20b", "/%zz", "/a%", "/a%2", "/%C3%A9", "/%c3%a9", "/+", "/a+b"),
    *("/a%0ab", "/a%0d%0ab", "/a%09b", "/a%3f", "/a%23", "/%u002e/", "/%252e%252e/a", "/a!$&'()*,:=@b", "/.*"),
    *("/a/b#c", '/a"b', "/{a}", "/a|b"),
    *("/@me", "/%40me", "/a:b", "/a%3ab", "/a%3Ab", "/%24m", "/$m", "/caf%c3%a9", "/caf%C3%A9/x", "/[a]", "/%5ba%5D"),
    *("/a%3Bb", "/a%7cb", "/x%2a", "/x%3data", "/x=ata", "/x%40", "/%2540me", "/%%34%30me", "/a/..;\\b", "/a/..%3b/b"),
    *("/a%3A/../b", "/%2A", "/*", "/a%21", "/a/%c3", "/a/%c3%28", "/a%2Cb", "/%C3%a9", "/a%3b/b"),
    *("/a%00b", "/a#b", "/a/b.png", "/.png", "/api/", "/api/%2e%2e/a", "/API", "/é", "/a/\u00e9"),
]
QUERIES = [
    *("", "", "", "?", "?k=v", "?k=w", "?k=v&k=w", "?k=w&k=v", "?K=v", "?k=%76", "?%6b=v", "?k=", "?k"),
    *("?k=v+w", "?k=v%20w", "?k=v%2Bw", "?a=/../b", "?k=v&other=1", "?&&k=v", "?k==v", "?k=a=b", "?k=a%3Db"),
    *("?k=%C3%A9", "?k=%c3%a9", "?k=v;k=w", "??k=v", "?/a", "?k=%zz", "?k=%0a", "?k=%26", "?k=v%", "?k=%2f"),
    *("?k[]=v", "?k=v#x", "?other=1&k=v", "?k=+", "?+k=v"),
    *("?k=v&k=v", "?k=w&k=v&k=w", "?k=&k=v", "?k&k=v", "?k=v&%6b=w", "?k=v&K=w", "?k=w&%6B=v"),  # several times
    *("?k=w&k=w&k=v", "?k=x&k=y", "?" + "&".join(f"k={number}" for number in range(12)), "?k=%E9&k=%F0%9F", "?k=%C3&k"),
    "?%C3%A9=v&k=v%20w",
]

# Paths of policies with characters that may be raw or %XX in a segment, each with a path that it forbids
PCHARS = [
    ("*:delete", "/things/1:delete"),
    ("/users/@me", "/users/@me"),
    ("/$metadata", "/$metadata"),
    ("/a(b)/*", "/a(b)/x"),
    ("/it's", "/it's"),
    ("/a,b", "/a,b"),
    ("/k=v/*", "/k=v/x"),
    ("/a&b", "/a&b"),
    ("/a+b", "/a+b"),
    ("/wow!", "/wow!"),
    ("/a;b", "/a;b"),
    ("/caf\u00e9/*", "/caf%C3%A9/x"),
    ("/na\u00efve", "/na%C3%AFve"),
    ("/a%20b", "/a%20b"),
]


def read_as(target: str) -> str:
    """Return a target as read by an application that decodes once, reads `\\` as `/`, and resolves dot segments."""
    path = unquote(target.partition("?")[0]).replace("\\", "/")
    return posixpath.normpath(f"/{path.lstrip('/')}")


def _without_parameters(target: str) -> str:
    """Return a target as servlets read it: they first cut off the rest of a segment after `;`."""
    return read_as("/".join(segment.partition(";")[0] for segment in target.partition("?")[0].split("/")))


def outside(*prefixes: str) -> Reading:
    """Return a check that an application gets only paths below these prefixes."""

    def reading(arrived: Arrived) -> str | None:
        for read in (read_as(arrived.target), _without_parameters(arrived.target)):
            if not any(f"{read}/".startswith(prefix) for prefix in prefixes):
                return f"the application reads {read}, which no policy allows"
        return None

    return reading


def inside(prefix: str) -> Reading:
    """Return a check that an application gets no path below this prefix."""

    def reading(arrived: Arrived) -> str | None:
        read = read_as(arrived.target)
        return f"the application reads {read}, which is forbidden" if f"{read}/".startswith(prefix) else None

    return reading


# Each trick takes a path and returns another spelling, which most servers read as the same path.
_TRICKS: dict[str, Callable[[str], str]] = {
    "as it is": lambda p: p,
    "first letter as %XX": lambda p: f"/%{ord(p[1]):02x}{p[2:]}",
    "last letter as %XX": lambda p: f"{p[:-1]}%{ord(p[-1]):02X}",
    "all letters as %XX": lambda p: "".join(c if c == "/" else f"%{ord(c):02x}" for c in p),
    "one letter as %XX of %XX": lambda p: f"/%25{ord(p[1]):02x}{p[2:]}",
    "%XX of a digit of %XX": lambda p: f"/%{ord('%'):x}{ord(p[1]):02x}{p[2:]}",
    "first letter as %uXXXX": lambda p: f"/%u{ord(p[1]):04x}{p[2:]}",
    "first letter as an overlong sequence": lambda p: f"/%c1%{ord(p[1]) | 0x80:02x}{p[2:]}",
    "first letter in full width": lambda p: (
        "/" + "".join(f"%{b:02x}" for b in chr(ord(p[1]) + 0xFEE0).encode()) + p[2:]
    ),
    "first letter of another script": lambda p: f"/%d1%95{p[2:]}",
    "in capitals": str.upper,
    "first letter in capitals": lambda p: p[0] + p[1].upper() + p[2:],
    "two slashes before": lambda p: f"/{p}",
    "many slashes before": lambda p: f"////{p}",
    "two slashes within": lambda p: p.replace("/", "//"),
    "a slash behind": lambda p: f"{p}/",
    "slashes behind": lambda p: f"{p}//",
    "a dot segment before": lambda p: f"/.{p}",
    "a dot segment behind": lambda p: f"{p}/.",
    "an encoded dot segment before": lambda p: f"/%2e{p}",
    "two dots before": lambda p: f"/..{p}",
    "encoded dots before": lambda p: f"/%2e%2e{p}",
    "half encoded dots before": lambda p: f"/.%2E{p}",
    "dots encoded twice": lambda p: f"/api/%252e%252e{p}",
    "overlong dots": lambda p: f"/api/%c0%ae%c0%ae{p}",
    "dots as %u": lambda p: f"/api/%u002e%u002e{p}",
    "full-width dots": lambda p: f"/api/%ef%bc%8e%ef%bc%8e{p}",
    "three dots": lambda p: f"/api/...{p}",
    "a segment and up again": lambda p: f"/x/..{p}",
    "up from /api": lambda p: f"/api/..{p}",
    "up from /api, encoded": lambda p: f"/api/%2e%2e{p}",
    "up from /api, one dot encoded": lambda p: f"/api/.%2e{p}",
    "up from deep": lambda p: f"/api/a/b/c/../../../..{p}",
    "up beyond the root": lambda p: f"/api/../../..{p}",
    "up after an empty segment": lambda p: f"/api//..{p}",
    "up twice after an empty segment": lambda p: f"/api//../..{p}",
    "up with a backslash": lambda p: f"/api/..\\{p[1:]}",
    "up between backslashes": lambda p: f"/api\\..\\{p[1:]}",
    "backslashes": lambda p: "/" + p[1:].replace("/", "\\"),
    "a backslash first": lambda p: "\\" + p[1:],
    "a slash and a backslash": lambda p: f"/\\{p[1:]}",
    "an encoded slash first": lambda p: f"/%2f{p[1:]}",
    "encoded slashes within": lambda p: "/" + p[1:].replace("/", "%2F"),
    "encoded backslashes within": lambda p: "/" + p[1:].replace("/", "%5c"),
    "up by an encoded slash": lambda p: f"/api/..%2f{p[1:]}",
    "up by an encoded backslash": lambda p: f"/api/..%5C{p[1:]}",
    "up by everything encoded": lambda p: f"/api/%2e%2e%2f{p[1:]}",
    "slashes encoded twice": lambda p: f"/api/..%252f{p[1:]}",
    "overlong slashes": lambda p: f"/api/..%c0%af{p[1:]}",
    "slashes as %u": lambda p: f"/api/..%u2215{p[1:]}",
    "full-width slashes": lambda p: f"/api/..%ef%bc%8f{p[1:]}",
    "up with parameters": lambda p: f"/api/..;{p}",
    "up with a named parameter": lambda p: f"/api/..;a=b{p}",
    "up with parameters, encoded": lambda p: f"/api/%2e%2e;{p}",
    "up with an encoded semicolon": lambda p: f"/api/..%3b{p}",
    "up with a parameter and a backslash": lambda p: f"/api/..;\\{p[1:]}",
    "a dot with parameters": lambda p: f"/.;a=b{p}",
    "parameters behind": lambda p: f"{p};a=b",
    "empty parameters behind": lambda p: f"{p};",
    "parameters in a segment": lambda p: p.replace("/", "/;a=b/", 1),
    "parameters with dots": lambda p: f"/api/;/..;/..{p}",
    "parameters with a path": lambda p: f"/api;{p}/../..{p}",
    "a query behind": lambda p: f"{p}?a=b",
    "an empty query behind": lambda p: f"{p}?",
    "another path as query": lambda p: f"{p}?/api/x",
    "as query of another path": lambda p: f"/api/x?/../..{p}",
    "as encoded query of another path": lambda p: f"/api/x%3f/../..{p}",
    "an encoded question mark behind": lambda p: f"{p}%3f",
    "an encoded fragment behind": lambda p: f"{p}%23",
    "a fragment behind": lambda p: f"{p}#x",
    "as fragment of another path": lambda p: f"/api/x#/../..{p}",
    "as encoded fragment of another path": lambda p: f"/api/x%23/../..{p}",
    "an encoded blank behind": lambda p: f"{p}%20",
    "an encoded blank before": lambda p: f"/%20{p[1:]}",
    "an encoded tab behind": lambda p: f"{p}%09",
    "an encoded CR behind": lambda p: f"{p}%0d",
    "an encoded LF behind": lambda p: f"{p}%0a",
    "an encoded CRLF behind": lambda p: f"{p}%0d%0aHost:%20x",
    "an encoded NUL behind": lambda p: f"{p}%00",
    "an encoded NUL before": lambda p: f"/%00{p[1:]}",
    "an encoded DEL behind": lambda p: f"{p}%7f",
    "a plus behind": lambda p: f"{p}+",
    "a dot behind": lambda p: f"{p}.",
    "an encoded dot behind": lambda p: f"{p}%2e",
    "an extension behind": lambda p: f"{p}.json",
    "a tilde behind": lambda p: f"{p}~",
    "a stream of Windows": lambda p: f"{p}::$DATA",
    "half a %XX behind": lambda p: f"{p}%",
    "half a %X behind": lambda p: f"{p}%2",
    "a wrong %XX": lambda p: f"/%zz/..{p}",
    "a zero-width blank": lambda p: f"/%e2%80%8b{p[1:]}",
    "a byte order mark": lambda p: f"/%ef%bb%bf{p[1:]}",
    "a soft hyphen": lambda p: f"{p[:2]}%c2%ad{p[2:]}",
    "a combining dot": lambda p: f"{p[:2]}%cc%87{p[2:]}",
    "right to left": lambda p: f"/%e2%80%ae{p[1:]}",
    "a byte that is not UTF-8": lambda p: f"/%ff/..{p}",
    "the whole address": lambda p: f"http://h{p}",
    "the whole address in capitals": lambda p: f"HTTP://H{p}",
    "the whole address, safe": lambda p: f"https://h{p}",
    "the whole address with a port": lambda p: f"http://h:80{p}",
    "the whole address with a user": lambda p: f"http://u:p@h{p}",
    "the whole address that climbs": lambda p: f"http://h/api/..{p}",
    "the whole address of another host": lambda p: f"http://other{p}",
    "the whole address without a host": lambda p: f"http://{p}",
    "a scheme and no slashes": lambda p: f"http:{p}",
    "a host as in a browser": lambda p: f"//h{p}",
    "very deep": lambda p: f"/api/{'a/' * 300}{'../' * 301}{p[1:]}",
    "very many slashes": lambda p: f"/{'/' * 500}{p[1:]}",
    "very many dots": lambda p: f"/{'./' * 500}{p[1:]}",
}

SECRET = "/secret/x"  # noqa: S105 - a path


def spellings() -> Iterator[tuple[str, str]]:
    """Yield every trick on a forbidden path, by name."""
    for name, trick in _TRICKS.items():
        yield name, trick(SECRET)
        yield f"{name}, of the folder", trick("/secret")


def spelled(random: Random, path: str = SECRET) -> str:
    """Return a path after several tricks in a row."""
    for _ in range(random.choice((1, 2, 2, 3))):
        path = _TRICKS[random.choice([name for name in _TRICKS if not name.startswith("very")])](path)
        if not path.startswith(("/", "\\")):
            return path  # an absolute target allows no further trick
        if len(path) < 3:
            path += "xyz"
    return path


def pchar_spellings(path: str) -> Iterator[str]:
    """Yield a path with letters as %XX: each letter alone, and all, in both letter cases of the digits."""
    plain = unquote(path)
    yield path
    for place, character in enumerate(plain):
        if character != "/":
            raw = "".join(f"%{byte:02X}" for byte in character.encode())
            before = "".join(c if c.isascii() and c != " " else _encoded(c) for c in plain[:place])
            behind = "".join(c if c.isascii() and c != " " else _encoded(c) for c in plain[place + 1 :])
            yield before + raw + behind
            yield before + raw.lower() + behind
    yield "".join(c if c == "/" else _encoded(c) for c in plain)


def _encoded(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode())


def targets(random: Random) -> str:
    """Return a target for the generated world: a plain, a known odd, or a random one."""
    match random.random():
        case share if share < 0.3:
            return random.choice(PLAIN)
        case share if share < 0.75:
            return random.choice(TARGETS)
        case _:
            path = spelled(random, random.choice([path for path in PLAIN if len(path) > 1]))
            return path if path.startswith("/") else random.choice(TARGETS)  # a question is about a path


def queries(random: Random) -> str:
    """Return a known odd query, or several parameters, some of them repeated."""
    if random.random() < 0.8:
        return random.choice(QUERIES)
    parts = [query[1:] for query in QUERIES if query[1:] and "#" not in query]
    return "?" + "&".join(random.choice(parts) for _ in range(random.randint(2, 4)))


def sneaked(seed: int, number: int) -> Iterator[str]:
    """Yield `number` random spellings of a forbidden path."""
    random = Random(seed)  # noqa: S311 - it chooses what to test
    for _ in range(number):
        yield spelled(random)
