"""`call`: a real call through the running mesh, and the reason for its result."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eastgate.basics.diagnostics import Code, Diagnostic, Severity
from eastgate.basics.diagnostics.printable import printable
from eastgate.basics.records import dataclass
from eastgate.cli.complete import matching
from eastgate.cli.options import bad_option, record
from eastgate.cli.output import ALLOWED, DENIED, UNDECIDED, colored, emit_json, fail, output_option, print_lines
from eastgate.cli.questions import headers_from

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


# Requests of commands to a running mesh.


mesh_option = click.option("--name", default="default", show_default=True, metavar="MESH", help="Name of the mesh.")


def ask(name: str, what: str, **arguments: Any) -> dict[str, Any]:
    """Send a request to a running mesh. If it does not answer, print the reason and exit."""
    from eastgate.control.codes import NO_MESH
    from eastgate.local.machine.control import ControlClient
    from eastgate.local.machine.rundir import LocalMeshError, find

    try:
        client = ControlClient(find(name).socket("control"))
        answer = asyncio.run(client.ask(what, **arguments))
    except LocalMeshError as error:
        fail([Diagnostic(NO_MESH, str(error.args[0]), None, error.help or None)])
    if "failed" in answer:
        fail([failed(answer["failed"])])
    return answer


def failed(answer: dict[str, Any]) -> Diagnostic:
    """Parse a diagnostic of a mesh."""
    return Diagnostic(
        Code(answer["code"], "", "", Severity(answer["severity"])), answer["message"], None, answer["help"]
    )


def known_workloads(context: click.Context) -> list[dict[str, Any]]:
    """Return the workloads of the running mesh, for completion; none without a mesh."""
    return _known(context, "workloads")


def known_gateways(context: click.Context) -> list[dict[str, Any]]:
    """Return the gateways of the running mesh, for completion."""
    return _known(context, "gateways")


def _known(context: click.Context, what: str) -> list[dict[str, Any]]:
    from eastgate.local.machine.control import ControlClient
    from eastgate.local.machine.rundir import LocalMeshError, find

    try:
        client = ControlClient(find(context.params.get("name") or "default").socket("control"))
        known: list[dict[str, Any]] = asyncio.run(client.ask("status"))[what]
    except LocalMeshError:
        return []
    return known


DISAGREE = 3
_MAX_RESULT_CHARS = 2000
UNANSWERED = 4
_EXIT = (
    "Exits with 0 if the call was allowed and answered, 1 if it was denied, 2 if it could not be made, "
    "3 if the proxy and the engine disagree (this is a bug), 4 if it was allowed and no answer came."
)


_COLORS = {"allow": "green", "no answer": "yellow"}


def _sources(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    workloads = known_workloads(context)
    accounts = {str(workload["identity"]).rpartition("/ns/")[2].replace("/sa/", "/") for workload in workloads}
    names = [
        "anonymous",
        *(f"sa:{account}" for account in sorted(accounts)),
        *(f"pod:{workload['workload']}" for workload in workloads),
    ]
    return matching(names, incomplete)


def _destinations(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    names = [f"pod:{workload['workload']}" for workload in known_workloads(context)]
    gateways = [str(gateway["gateway"]) for gateway in known_gateways(context)]
    return matching([*names, "service:", *gateways, "route:", "backend:"], incomplete)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sent:
    """The two ends of a call, and the request or bytes to send."""

    source: str
    to: str
    port: int | None
    source_ip: str | None
    positional: str | None
    method: str | None
    path: str | None
    host: str | None
    headers: tuple[str, ...]
    token: str | None
    data: str | None
    raw: bool

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the mesh's call."""
        if self.positional is not None and self.path is not None and self.positional != self.path:
            raise click.UsageError(f"two paths: {self.positional} and {self.path}")
        path, body = self.positional or self.path, _data(self.data)
        ends = {"source": self.source, "to": self.to, "port": self.port, "source_ip": self.source_ip}
        asked = {**ends, "body": base64.b64encode(body).decode(), "raw": self.raw}
        if not self.raw:
            method = self.method or ("POST" if body else None)
            return {**asked, "path": path, "host": self.host, "method": method, "headers": self._headers()}
        if path or self.host or self.method or self.headers or self.token:
            raise click.UsageError("--raw sends bytes: it has no path, method, host, headers or token")
        return asked

    def _headers(self) -> dict[str, list[str]] | None:
        """Return the headers, with the token, if any."""
        headers = headers_from(self.headers)
        if self.token is None:
            return headers
        if any(name.lower() == "authorization" for name in headers or ()):
            raise click.UsageError("--token is sent as the header authorization: leave out one of the two")
        text = _data(self.token).decode("utf-8", "replace").strip()
        return {**(headers or {}), "authorization": [f"Bearer {text}"]}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mcp:
    """The MCP request of a call, if it is one."""

    tool: str | None
    arguments: str | None
    mcp_method: str | None
    mcp_params: str | None
    mcp_version: str | None

    def request(self) -> dict[str, Any] | None:
        """Return the MCP request of the options, or None."""
        tool, method, version = self.tool, self.mcp_method, self.mcp_version
        if tool is None and method is None:
            if self.arguments is not None or self.mcp_params is not None or version is not None:
                raise click.UsageError("there is no MCP request: give --tool or --mcp-method")
            return None
        if tool is None:
            if self.arguments is not None:
                raise click.UsageError("--arguments are those of a --tool; other requests have --mcp-params")
            return {"method": method, "params": _object(self.mcp_params, "--mcp-params"), "version": version}
        if method not in (None, "tools/call") or self.mcp_params is not None:
            raise click.UsageError("--tool calls a tool: leave out --mcp-method and --mcp-params")
        given = {"name": tool, "arguments": _object(self.arguments, "--arguments")}
        return {"method": "tools/call", "params": given, "version": version}


_sent = record(
    "sent",
    _Sent,
    click.option(
        "--from",
        "source",
        required=True,
        metavar="SRC",
        shell_complete=_sources,
        help="sa:NS/NAME, pod:NS/NAME, spiffe://.., ip:ADDRESS or anonymous.",
    ),
    click.option(
        "--to",
        required=True,
        metavar="DST",
        shell_complete=_destinations,
        help="pod:, service:, gateway:, route: or backend:, and NS/NAME.",
    ),
    click.option("--port", type=int, help="Destination port; optional if there is only one."),
    click.argument("positional", metavar="[PATH]", required=False),
    click.option("--method", help="HTTP method; GET, or POST with --data."),
    click.option("--path", help="HTTP path, sent as it is; the same as PATH."),
    click.option("--host", help="HTTP host."),
    click.option("--header", "headers", multiple=True, metavar="K=V", help="HTTP header."),
    click.option("--token", metavar="TEXT|@FILE", help="Token to send, as `authorization: Bearer`."),
    click.option("--source-ip", metavar="ADDRESS", help="Call from this address, in 127.0.0.0/8."),
    click.option("--data", metavar="TEXT|@FILE", help="Body of the request; @- is standard input."),
    click.option("--raw", is_flag=True, help="Send the data as it is, without HTTP."),
)

_mcp = record(
    "mcp",
    _Mcp,
    click.option("--tool", help="Call this MCP tool through a gateway."),
    click.option("--arguments", metavar="JSON", help="Arguments of the tool."),
    click.option("--mcp-method", metavar="METHOD", help="Make this MCP request through a gateway, such as tools/list."),
    click.option("--mcp-params", metavar="JSON", help="Parameters of the MCP request."),
    click.option("--mcp-version", metavar="DATE", help="Version of MCP. Default: the newest that Eastgate knows."),
)


@click.command(epilog=_EXIT)
@_sent
@_mcp
@click.option("--repeat", type=click.IntRange(1, 10_000), default=1, metavar="N", help="Make the call N times.")
@click.option(
    "--timeout", type=click.FloatRange(0.01, 60), default=5.0, show_default=True, help="Limit of the call, in seconds."
)
@mesh_option
@output_option("text", "json", about="Format of the answer.")
def call(sent: _Sent, mcp: _Mcp, repeat: int, timeout: float, name: str, output: str) -> None:
    """Make a real mTLS call through the running mesh.

    The answer shows the verdict of the proxy, and its reason. A call through a gateway may be an MCP request: --tool
    speaks the whole protocol, and shows the result.
    """
    request = mcp.request()
    if request is not None and (sent.raw or sent.data is not None or sent.method is not None):
        raise click.UsageError("an MCP request has its own method and body: leave out --method, --data and --raw")
    asked = {**sent.arguments(), "mcp": request, "timeout": timeout, "color": colored() and output != "json"}
    made: list[dict[str, Any]] = []
    explained: set[tuple[object, ...]] = set()
    for _ in range(repeat):
        answer = ask(name, "call", explain=True, **asked)
        for call_made in answer["calls"]:
            made.append(call_made)
            if output != "json":
                same = (
                    call_made["at"],
                    call_made["verdict"],
                    call_made["agrees"],
                    (call_made["proxy"] or {}).get("decision"),
                )
                print_lines(_describe_call(call_made, why=same not in explained))
                explained.add(same)
    if output == "json":
        emit_json({"verdict": _worst(made), "calls": made})
    elif len(made) > 1:
        print_lines(_summary(made))
    sys.exit(_status(made))


def _data(text: str | None) -> bytes:
    if text is None or not text.startswith("@"):
        return (text or "").encode("utf-8", "surrogateescape")
    if text == "@-":
        return sys.stdin.buffer.read()
    try:
        return Path(text[1:]).read_bytes()
    except OSError as error:
        bad_option(f"cannot read `{text[1:]}`: {error.strerror}")


def _object(text: str | None, option: str) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        bad_option(f"`{text}` is no JSON object", f"""write {option} '{{"a": 1}}'""")
    return value


def _describe_call(call: dict[str, Any], *, why: bool) -> str:
    verdict = call["verdict"] if call["made"] else "not made"
    if _unanswered(call):
        verdict = "no answer"
    painted = click.style(verdict.upper(), fg=_COLORS.get(verdict, "red"), bold=True)
    came = str(call["status"]) if call["status"] else call["error"] or "no answer"
    lines = [f"{painted}  " + printable(f"{came}  {call['at']}  {call['milliseconds']:.0f} ms")]
    proxy, engine = call["proxy"], call["engine"]
    if call["mcp"] is not None:
        lines[0] += printable(f"  {_sum_up_mcp(call['mcp'])}")
    if not why:
        return lines[0]
    if call["way"]:
        lines.append(printable(f"  way:    {call['way']}"))
    if proxy is not None:
        lines.append(printable(f"  proxy:  {proxy['verdict']}: {proxy['reason']}{_position(proxy)}"))
    else:
        lines.append("  proxy:  it logged nothing")
    lines.append(printable(f"  engine: {engine['verdict']}: {engine['reason']}{_position(engine)}"))
    lines += _describe_mcp(call)
    if call["check"] is not None and not call["check"]["agrees"]:
        lines += _describe_check(call["check"])
    if call["note"]:
        lines.append(printable(f"  note:   {call['note']}"))
    if not call["agrees"]:
        loud = "PROXY AND ENGINE DISAGREE: the proxy did not follow the policies"
        lines += ["", click.style(loud, fg="white", bg="red", bold=True)]
    if call.get("explanation"):
        lines += ["", call["explanation"], ""]
    return "\n".join(lines)


def _describe_check(check: dict[str, Any]) -> Iterator[str]:
    """The answer of `check`, if it differs, and its reason."""
    verdict = check["verdict"] or "no answer"
    yield click.style(printable(f"  check:  {verdict}: {check['reason']}{_position(check)}"), fg="yellow")
    yield from (printable(f"  they differ: {cause}") for cause in check["causes"])


def _sum_up_mcp(mcp: dict[str, Any]) -> str:
    if mcp["error"] is not None:
        return f"{mcp['method']}: error {mcp['error']['code']}: {mcp['error']['message']}"
    return f"{mcp['method']}: {mcp['problem'] or 'result'}"


def _describe_mcp(call: dict[str, Any]) -> Iterator[str]:
    """The steps of an MCP request, if there are several, and its result."""
    mcp = call["mcp"]
    if mcp is None:
        return
    if len(call["steps"]) > 1:
        steps = (f"{step['mcpMethod'] or step['method']} {step['status'] or 'no answer'}" for step in call["steps"])
        yield printable(f"  steps:  {', '.join(steps)}")
    if mcp["result"] is not None:
        yield printable(f"  result: {_shorten(json.dumps(mcp['result'], ensure_ascii=False))}")


def _shorten(text: str) -> str:
    return text if len(text) <= _MAX_RESULT_CHARS else f"{text[:_MAX_RESULT_CHARS]}… (all of it: -o json)"


def _position(proxy: dict[str, Any]) -> str:
    return f"  ({proxy['file']}:{proxy['line']})" if proxy.get("file") else ""


def _summary(made: list[dict[str, Any]]) -> str:
    took = sorted(call["milliseconds"] for call in made)
    allowed = sum(call["made"] and call["verdict"] == "allow" for call in made)
    unanswered = sum(map(_unanswered, made))
    without = f" ({unanswered} without an answer)" if unanswered else ""
    denied = sum(call["made"] and call["verdict"] == "deny" for call in made)
    other = f", {len(made) - allowed - denied} not made" if len(made) > allowed + denied else ""
    return (
        f"{len(made)} calls: {allowed} allowed{without}, {denied} denied{other}; "
        f"{took[0]:.1f} ms at least, {took[len(took) // 2]:.1f} in the middle, {took[-1]:.1f} at most"
    )


def _worst(made: list[dict[str, Any]]) -> str | None:
    return {ALLOWED: "allow", UNANSWERED: "allow", DENIED: "deny"}.get(_status(made))


def _status(made: list[dict[str, Any]]) -> int:
    if any(not call["agrees"] for call in made):
        return DISAGREE
    if any(not call["made"] for call in made):
        return UNDECIDED
    if any(call["verdict"] == "deny" for call in made):
        return DENIED
    return UNANSWERED if any(map(_unanswered, made)) else ALLOWED


def _unanswered(call: dict[str, Any]) -> bool:
    return bool(call["made"] and call["verdict"] == "allow" and not call["answered"])
