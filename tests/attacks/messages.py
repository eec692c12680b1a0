"""Calls of a tool that a gateway and an MCP server may read as different messages, or the gateway not at all."""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from collections.abc import Iterator

from tests.attacks.agents import request, tool_message
from tests.attacks.frames import DATA, END_HEADERS, END_STREAM, HEADERS, Field, frame, literal, opening
from tests.attacks.trying import Try

__all__ = ["bodies", "framed", "requests", "tries"]

ALLOWED = "add"
_JSON = "application/json"
_OVERRIDES = ("x-http-method-override", "x-method-override", "x-http-method")


def bodies(tool: str) -> Iterator[tuple[str, bytes]]:
    """Yield named bodies that some server reads as a call of the tool."""
    call = json.dumps(tool_message(tool))
    other = json.dumps(tool_message(ALLOWED))
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in tool)
    head = '"jsonrpc":"2.0","id":1'
    params = f'"params":{{"name":"{tool}"}}'
    fine = f'"params":{{"name":"{ALLOWED}"}}'
    written = {
        "plain": call,
        "blanks": f" \r\n\t{call}\n",
        "the name in escapes": call.replace(f'"{tool}"', f'"{escaped}"'),
        "the method in escapes": call.replace("tools/call", "tools\\u002fcall"),
        "keys in escapes": call.replace('"name"', '"n\\u0061me"').replace('"params"', '"par\\u0061ms"'),
        "an escaped slash": call.replace("tools/call", "tools\\/call"),
        "the name twice": f'{{{head},"method":"tools/call","params":{{"name":"{ALLOWED}","name":"{tool}"}}}}',
        "the name twice, the other first": (
            f'{{{head},"method":"tools/call","params":{{"name":"{tool}","name":"{ALLOWED}"}}}}'
        ),
        "the name twice, once in escapes": (
            f'{{{head},"method":"tools/call","params":{{"name":"{ALLOWED}","n\\u0061me":"{tool}"}}}}'
        ),
        "params twice": f'{{{head},"method":"tools/call",{fine},{params}}}',
        "the method twice": f'{{{head},"method":"ping","method":"tools/call",{params}}}',
        "the method twice, once an array": f'{{{head},"method":"ping","method":["tools/call"],{params}}}',
        "the name twice, once an array": (
            f'{{{head},"method":"tools/call","params":{{"name":"{ALLOWED}","name":["{tool}"]}}}}'
        ),
        "params twice, once an array": f'{{{head},"method":"tools/call",{fine},"params":["{tool}"]}}',
        "params in an array": f'{{{head},"method":"tools/call","params":[{{"name":"{tool}"}}]}}',
        "a name in an array": f'{{{head},"method":"tools/call","params":{{"name":["{tool}"]}}}}',
        "a name in an object": f'{{{head},"method":"tools/call","params":{{"name":{{"name":"{tool}"}}}}}}',
        "a name nested": f'{{{head},"method":"tools/call","params":{{"params":{{"name":"{tool}"}}}}}}',
        "a name nested beside": (
            f'{{{head},"method":"tools/call","params":{{"name":{{"x":"{ALLOWED}"}},"arguments":{{"name":"{tool}"}}}}}}'
        ),
        "a dotted key": f'{{{head},"method":"tools/call","params.name":"{tool}"}}',
        "no name": f'{{{head},"method":"tools/call","params":{{}}}}',
        "no params": f'{{{head},"method":"tools/call"}}',
        "a name that is null": f'{{{head},"method":"tools/call","params":{{"name":null}}}}',
        "a result beside": f'{{{head},"method":"tools/call",{params},"result":{{}}}}',
        "a result before": f'{{"result":{{}},{head},"method":"tools/call",{params}}}',
        "an error beside": f'{{{head},"method":"tools/call",{params},"error":{{"code":1,"message":""}}}}',
        "a result that is null": f'{{{head},"method":"tools/call",{params},"result":null}}',
        "an object under the empty key": f'{{{head},"method":"tools/call","params":{{"":{{}},"name":"{tool}"}}}}',
        "an object under the empty key, outside": f'{{"":{{}},{head},"method":"tools/call",{params}}}',
        "an object under the empty key of arguments": (
            f'{{{head},"method":"tools/call","params":{{"arguments":{{"":{{}}}},"name":"{tool}"}}}}'
        ),
        "keys in other cases": f'{{{head},"method":"ping","Method":"tools/call",{params}}}',
        "the key of the name in another case": (
            f'{{{head},"method":"tools/call","params":{{"name":"{ALLOWED}","Name":"{tool}"}}}}'
        ),
        "a key with a NUL": f'{{{head},"method":"tools/call","params":{{"name":"{ALLOWED}","name\\u0000":"{tool}"}}}}',
        "a key with a letter like it": f'{{{head},"method":"ping","m\u0435thod":"tools/call",{params}}}',
        "the method in another case": call.replace("tools/call", "Tools/Call"),
        "the method in capitals": call.replace("tools/call", "TOOLS/CALL"),
        "the method with a blank": call.replace("tools/call", "tools/call "),
        "the method with a NUL": call.replace("tools/call", "tools/call\\u0000"),
        "the method with a letter like it": call.replace("tools/call", "tools/c\u0430ll"),
        "the method in full width": call.replace("tools/call", "\uff54ools/call"),
        "a name behind a NUL": call.replace(f'"{tool}"', f'"{ALLOWED}\\u0000{tool}"'),
        "a name before a NUL": call.replace(f'"{tool}"', f'"{tool}\\u0000{ALLOWED}"'),
        "a name with a line break": call.replace(f'"{tool}"', f'"{ALLOWED}\\r\\nx-eastgate-source: free"'),
        "a name with a whole answer": call.replace(f'"{tool}"', f'"{ALLOWED}\\r\\n\\r\\nHTTP/1.1 200 OK\\r\\n"'),
        "a name with a C1 control": call.replace(f'"{tool}"', f'"{tool}\\u0085"'),
        "an empty name": call.replace(f'"{tool}"', '""'),
        "a lone surrogate": call.replace(f'"{tool}"', f'"{tool}\\ud800"'),
        "single quotes": call.replace('"', "'"),
        "a trailing comma": call[:-1] + ",}",
        "a comment": "/* x */" + call,
        "unquoted keys": call.replace('"method"', "method"),
        "an unknown escape": call.replace(f'"{tool}"', f'"\\{tool}"'),
        "a raw line break in a name": call.replace(f'"{tool}"', f'"{tool}\n"'),
        "NaN": call.replace('"arguments": {}', '"arguments": NaN'),
        "something behind": call + other,
        "something behind, on a line": other + "\n" + call,
        "an array behind": other + f"[{call}]",
        "a batch with it": f"[{other},{call}]",
        "a batch of it": f"[{call}]",
        "a batch with it first": f"[{call},{other}]",
        "a batch in a batch": f"[[{call}]]",
        "a batch of 64 with it": "[" + ",".join([other] * 63 + [call]) + "]",
        "a batch of 65 with it": "[" + ",".join([other] * 64 + [call]) + "]",
        "an empty batch": "[]",
        "a text": json.dumps(call),
        "no version": call.replace('"jsonrpc": "2.0", ', ""),
        "another version": call.replace('"2.0"', '"1.0"'),
        "no id": call.replace('"id": 1, ', ""),
        "an id that is null": call.replace('"id": 1', '"id": null'),
        "an id in an array": call.replace('"id": 1', '"id": [1]'),
        "an id that is an object": call.replace('"id": 1', '"id": {"a":1}'),
        "a huge id": call.replace('"id": 1', '"id": ' + "9" * 4000),
        "an id with a script": call.replace('"id": 1', '"id": "</script><script>\\r\\nx: y"'),
        "an id with operators of Envoy": call.replace('"id": 1', '"id": "%REQ(authorization)%%"'),
        "deep": call.replace('"arguments": {}', '"arguments": ' + "[" * 90 + "]" * 90),
        "very deep": "[" * 100_000 + call,
        "large": call.replace('"arguments": {}', f'"arguments": {{"x": "{"x" * 500_000}"}}'),
        "too large": call.replace('"arguments": {}', f'"arguments": {{"x": "{"x" * 1_100_000}"}}'),
        "the name behind the limit": (
            f'{{{head},"method":"tools/call","params":{{"name":"{ALLOWED}","x":"{"x" * 1_100_000}","name":"{tool}"}}}}'
        ),
    }
    for name, text in written.items():
        yield name, text.encode("utf-8", "surrogatepass")
    yield "a mark of UTF-8 before", b"\xef\xbb\xbf" + call.encode()
    yield "UTF-16", call.encode("utf-16")
    yield "UTF-16 without a mark", call.encode("utf-16-le")
    yield "UTF-32", call.encode("utf-32")
    yield "an overlong letter", call.encode().replace(tool.encode(), b"\xc1\xb2" + tool.encode()[1:])
    yield "bytes that are no UTF-8", call.encode().replace(tool.encode(), tool.encode() + b"\xff")
    yield "compressed", gzip.compress(call.encode())
    yield "deflated", zlib.compress(call.encode())
    yield "Base64", base64.b64encode(call.encode())
    yield "nothing", b""


def requests(tool: str) -> Iterator[tuple[str, bytes]]:  # noqa: C901 - a list
    """Yield complete requests whose headers give the body another meaning."""
    call, other = (json.dumps(tool_message(name)).encode() for name in (tool, ALLOWED))
    packed = gzip.compress(call)
    hidden = f"+ACI-,+ACI-method+ACI-:+ACI-tools/call+ACI-,+ACI-params+ACI-:{{+ACI-name+ACI-:+ACI-{tool}+ACI-}}"
    seven = other[:-1] + f',"x":"{hidden}"}}'.encode()

    def made(body: bytes, *headers: tuple[str, str], **more: object) -> bytes:
        return request(body, *headers, **more).encode("")  # type: ignore[arg-type]

    def typed(body: bytes, *types: str) -> bytes:
        return made(body, *(("content-type", kind) for kind in types), ("accept", "*/*"), bare=True)

    for kind in ("text/plain", "", "application/json-rpc", "application/json, text/plain", "application/x-ndjson"):
        yield f"the type {kind!r}", typed(call, kind)
    yield "no type", made(call, bare=True)
    for charset in ("utf-7", "utf-16", "utf-16le", "iso-8859-1", "utf-8; charset=utf-7", '"utf-7"', "UTF-8,utf-7"):
        yield f"the charset {charset}", typed(seven, f"{_JSON}; charset={charset}")
    yield "two types", typed(seven, _JSON, f"{_JSON}; charset=utf-7")
    yield "two types, the other first", typed(seven, "text/plain", _JSON)
    yield "a form", typed(b"method=tools/call&" + call, "application/x-www-form-urlencoded")
    for coding in ("gzip", "deflate", "br", "identity, gzip", "x-gzip", "aws-chunked"):
        yield f"the coding {coding}", made(packed, ("content-encoding", coding))
        yield f"the coding {coding} of a plain body", made(other, ("content-encoding", coding))
    yield "a transfer coding", made(packed, ("transfer-encoding", "gzip, chunked"))
    for name in _OVERRIDES:
        for method in ("GET", "DELETE", "POST", "PUT"):
            for to in ("POST", "PUT", "GET"):
                yield f"{method} with {name}: {to}", made(call, (name, to), method=method)
    for method in ("GET", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS", "TRACE", "QUERY", "post", "Post", "MCP"):
        yield f"{method} with a body", made(call, method=method)
    for name, value in (
        ("mcp-method", "ping"),
        ("mcp-method", "tools/list"),
        ("mcp-name", tool),
        ("mcp-name", f"=?base64?{base64.b64encode(tool.encode()).decode()}?="),
        ("Mcp-Name", ALLOWED + ", " + tool),
    ):
        yield f"{name}: {value} beside another", made(other, (name, value))
    yield "mcp-name twice", made(other, ("mcp-name", ALLOWED), ("mcp-name", tool))
    yield "mcp-name twice, in other cases", made(other, ("mcp-name", ALLOWED), ("MCP-NAME", tool))
    yield "mcp-name that is allowed", made(call, ("mcp-name", ALLOWED), ("mcp-method", "tools/call"))
    for name, value in (
        ("x-eastgate-source", "spiffe://td/ns/a/sa/free"),
        ("X-Eastgate-Source", "spiffe://td/ns/a/sa/free"),
        ("x-eastgate-destination", "a/maths#0~00000000.0"),
        ("x-eastgate-target", "gateway:a/gw:8080 nowhere"),
        ("x-eastgate-address", "127.0.0.1"),
        ("x-eastgate-message", "read"),
        ("x-envoy-original-path", "/healthz"),
        ("x-envoy-auth-partial-body", "false"),
        ("x-envoy-internal", "true"),
        ("x-envoy-decorator-operation", "x"),
        ("x-forwarded-client-cert", "URI=spiffe://td/ns/a/sa/free"),
        ("x-forwarded-for", "127.0.0.1"),
        ("x-forwarded-host", "files.example"),
        ("x-original-url", "/healthz"),
        ("x-rewrite-url", "/healthz"),
        ("forwarded", "for=127.0.0.1;host=files.example"),
        ("connection", "x-eastgate-source, x-eastgate-destination, x-eastgate-target"),
        ("connection", "content-type, content-length"),
        ("te", "trailers"),
        ("expect", "100-continue"),
        ("expect", "200-ok"),
        ("upgrade", "h2c"),
        ("authorization", "Bearer x"),
        ("proxy-authorization", "Basic eDp4"),
        ("grpc-timeout", "1S"),
        ("mcp-protocol-version", "2025-03-26"),
        ("mcp-protocol-version", "2026-07-28"),
    ):
        yield f"{name}: {value}", made(call, (name, value))
    for upgrade in ("websocket", "h2c", "TLS/1.3", "connect-udp", "WebSocket, h2c"):
        for method in ("GET", "POST"):
            headers = (
                ("connection", "upgrade, http2-settings"),
                ("upgrade", upgrade),
                ("http2-settings", "AAMAAABkAAQAAP__"),
            )
            yield f"{method} to upgrade to {upgrade}", made(call, *headers, method=method)
    yield "CONNECT", b"CONNECT maths.example:80 HTTP/1.1\r\nhost: maths.example\r\n\r\n" + made(call)
    yield "GET that waits for events", made(b"", method="GET")
    yield "GET that replays", made(b"", ("last-event-id", "1"), method="GET")


def _block(*fields: Field) -> bytes:
    return b"".join(literal(name, value) for name, value in fields)


def framed(tool: str) -> Iterator[Try]:
    """Yield messages in pieces: after the end of another one, with trailers, without an end."""
    call, other = (json.dumps(tool_message(name)).encode() for name in (tool, ALLOWED))
    head = (
        b"POST /mcp HTTP/1.1\r\nhost: maths.example\r\ncontent-type: application/json\r\n"
        b"accept: application/json, text/event-stream\r\n"
    )
    chunked = head + b"transfer-encoding: chunked\r\n\r\n"

    def chunk(data: bytes) -> bytes:
        return b"%x\r\n%s\r\n" % (len(data), data)

    end = b"0\r\n\r\n"
    yield Try("chunks", (chunked + chunk(call[:20]), chunk(call[20:]), end))
    yield Try("a byte in each chunk", (chunked + b"".join(chunk(call[at : at + 1]) for at in range(len(call))) + end,))
    yield Try("another message behind, in a chunk", (chunked + chunk(other), chunk(call) + end))
    yield Try("another message behind, late", (chunked + chunk(other), chunk(b"\n"), chunk(call), end))
    yield Try("blanks without end behind", (chunked + chunk(other), *(chunk(b" " * 60_000) for _ in range(20)), end))
    yield Try("trailers", (chunked + chunk(call) + b"0\r\ncontent-type: text/plain\r\nx-eastgate-source: x\r\n\r\n",))
    yield Try("a body that does not end", (chunked + chunk(call), b""))
    yield Try("a length that does not come", (head + b"content-length: 100000\r\n\r\n" + call, b""))
    yield Try("expected", (head + b"expect: 100-continue\r\ncontent-length: %d\r\n\r\n" % len(call), call))
    yield Try(
        "expected, and sent at once",
        (head + b"expect: 100-continue\r\ncontent-length: %d\r\n\r\n%s" % (len(call), call),),
    )
    short = head + b"content-length: %d\r\n\r\n%s" % (len(other) - 1, other[:-1] + b"}")
    yield Try("two lengths", (head + b"content-length: %d\r\ncontent-length: 5\r\n\r\n%s" % (len(call), call),))
    yield Try(
        "a length and chunks", (head + b"content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n" + chunk(call) + end,)
    )
    yield Try("pipelined", (short, head + b"content-length: %d\r\n\r\n%s" % (len(call), call)))
    yield Try(
        "another request in the body",
        (head + b"content-length: 0\r\n\r\n" + head + b"content-length: %d\r\n\r\n%s" % (len(call), call),),
    )
    fields = [
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", b"/mcp"),
        (b":authority", b"maths.example"),
        (b"content-type", b"application/json"),
        (b"accept", b"application/json, text/event-stream"),
    ]

    def block(*more: tuple[bytes, bytes], **changed: bytes) -> bytes:
        named = [(name, changed.get(name.decode().strip(":"), value)) for name, value in fields]
        return _block(*named, *more)

    def h2(name: str, *frames: bytes) -> Try:
        return Try(f"HTTP/2: {name}", (opening() + frames[0], *frames[1:]), ("h2",))

    yield h2("plain", frame(HEADERS, END_HEADERS, 1, block()) + frame(DATA, END_STREAM, 1, call))
    yield h2("no body", frame(HEADERS, END_HEADERS | END_STREAM, 1, block()))
    yield h2("an empty frame", frame(HEADERS, END_HEADERS, 1, block()) + frame(DATA, END_STREAM, 1, b""))
    yield h2(
        "another message behind, in a frame",
        frame(HEADERS, END_HEADERS, 1, block()) + frame(DATA, 0, 1, other),
        frame(DATA, END_STREAM, 1, call),
    )
    yield h2(
        "trailers",
        frame(HEADERS, END_HEADERS, 1, block())
        + frame(DATA, 0, 1, call)
        + frame(HEADERS, END_HEADERS | END_STREAM, 1, _block((b"content-type", b"text/plain"))),
    )
    yield h2(
        "trailers before the end",
        frame(HEADERS, END_HEADERS, 1, block()) + frame(DATA, 0, 1, call[:-1]),
        frame(HEADERS, END_HEADERS | END_STREAM, 1, _block((b"x", b"y"))),
    )
    yield h2("GET with a body", frame(HEADERS, END_HEADERS, 1, block(method=b"GET")) + frame(DATA, END_STREAM, 1, call))
    yield h2(
        "a length that lies",
        frame(HEADERS, END_HEADERS, 1, block((b"content-length", b"5"))) + frame(DATA, END_STREAM, 1, call),
    )
    yield h2(
        "no length and chunked",
        frame(HEADERS, END_HEADERS, 1, block((b"transfer-encoding", b"chunked"))) + frame(DATA, END_STREAM, 1, call),
    )
    yield h2(
        "another host beside",
        frame(HEADERS, END_HEADERS, 1, block((b"host", b"files.example"))) + frame(DATA, END_STREAM, 1, call),
    )
    yield h2(
        "extended CONNECT",
        frame(HEADERS, END_HEADERS, 1, block((b":protocol", b"websocket"), method=b"CONNECT"))
        + frame(DATA, 0, 1, call),
    )
    yield h2(
        "CONNECT",
        frame(HEADERS, END_HEADERS, 1, _block((b":method", b"CONNECT"), (b":authority", b"maths.example")))
        + frame(DATA, 0, 1, call),
    )
    yield h2(
        "expected",
        frame(HEADERS, END_HEADERS, 1, block((b"expect", b"100-continue"))),
        frame(DATA, END_STREAM, 1, call),
    )
    yield h2(
        "our own headers",
        frame(HEADERS, END_HEADERS, 1, block((b"x-eastgate-source", b"spiffe://td/ns/a/sa/free")))
        + frame(DATA, END_STREAM, 1, call),
    )
    yield h2("no end", frame(HEADERS, END_HEADERS, 1, block()) + frame(DATA, 0, 1, call), b"")


def tries(tool: str) -> Iterator[Try]:
    """Yield every way to call a tool."""
    for name, body in bodies(tool):
        yield Try(f"a body: {name}", (request(body).encode(""),))
    for name, data in requests(tool):
        yield Try(name, (data,))
    yield from framed(tool)
