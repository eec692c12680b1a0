"""Lua as Envoy runs it: a script that answers each text with a text, in an Envoy that ends with its test."""

from __future__ import annotations

import http.client
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from eastgate.local.machine.envoy import find_envoy
from tests.envoy.server.envoy import TYPE, free_port
from tests.patience import PATIENCE

__all__ = ["Answer", "ask", "running_lua"]

Answer = Callable[..., bytes]
"""Sends a body, and the headers that may follow it, and returns the body of the answer."""

# The script under test defines `answer`. Its errors are answers too.
_DRIVER = """
local function unhex(text) return (text:gsub("%x%x", function(code) return string.char(tonumber(code, 16)) end)) end
local function hex(text) return (text:gsub(".", function(c) return string.format("%02x", c:byte()) end)) end
function envoy_on_request(handle)
  local body = handle:body()
  local lines = {}
  for line in (body and body:getBytes(0, body:length()) or ""):gmatch("([^\\n]*)\\n") do
    local fields = {}
    for field in line:gmatch("[^ ]+") do fields[#fields + 1] = unhex(field:sub(2)) end
    local fine, result = pcall(answer, unpack(fields))
    lines[#lines + 1] = (fine and "=" or "!") .. hex(tostring(result))
  end
  handle:respond({ [":status"] = "200" }, table.concat(lines, "\\n"))
end
"""


@contextmanager
def running_lua(script: str, folder: Path, driver: str = _DRIVER) -> Iterator[Answer]:
    """Run an Envoy whose Lua filter has this script and a driver, and return a function that sends requests to it."""
    port = free_port()
    config = folder / "lua.json"
    config.write_text(json.dumps({"static_resources": {"listeners": [_listener(port, script + driver)]}}), "utf-8")
    command = [str(find_envoy()), "--disable-hot-restart", "--concurrency", "1", "-l", "error", "-c", str(config)]
    if sys.platform == "linux" and (setpriv := shutil.which("setpriv")) is not None:
        command = [setpriv, "--pdeathsig", "KILL", "--", *command]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_until_open(port, process)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)

        def answer(body: bytes, *headers: tuple[str, str]) -> bytes:
            connection.putrequest("POST", "/")
            for name, value in (("content-length", str(len(body))), *headers):
                connection.putheader(name, value)
            connection.endheaders(body)
            return connection.getresponse().read()

        yield answer
        connection.close()
    finally:
        process.kill()
        process.wait(PATIENCE)


def ask(answer: Answer, rows: list[tuple[bytes, ...]]) -> list[bytes]:
    """Return the script's answers to rows of arguments. An error begins with `!`, any other answer with `=`."""
    body = b"".join(b" ".join(b"x" + field.hex().encode() for field in row) + b"\n" for row in rows)
    lines = answer(body).split(b"\n")
    assert len(lines) == len(rows), lines[:3]
    return [line[:1] + bytes.fromhex(line[1:].decode()) for line in lines]


def _wait_until_open(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        try:
            connection.connect()
        except ConnectionRefusedError:
            assert process.poll() is None, "Envoy refuses the script"
            assert time.monotonic() < deadline
            time.sleep(0.02)
        else:
            return
        finally:
            connection.close()


def _listener(port: int, script: str) -> dict[str, Any]:
    lua = {
        "@type": TYPE + "extensions.filters.http.lua.v3.Lua",
        "default_source_code": {"inline_string": script},
    }
    reply = {"match": {"prefix": "/"}, "direct_response": {"status": 500}}
    manager = {
        "@type": TYPE + "extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "lua",
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [reply]}]},
        "http_filters": [
            {"name": "lua", "typed_config": lua},
            {"name": "router", "typed_config": {"@type": TYPE + "extensions.filters.http.router.v3.Router"}},
        ],
    }
    return {
        "name": "lua",
        "address": {"socket_address": {"address": "127.0.0.1", "port_value": port}},
        "per_connection_buffer_limit_bytes": 16 * 1024 * 1024,
        "filter_chains": [{"filters": [{"name": "http", "typed_config": manager}]}],
    }
