"""`call`: a real call through the running mesh, and why it went as it did."""

from __future__ import annotations

import base64
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eastgate.cli.asking import ask, known_workloads, mesh_option
from eastgate.cli.complete import matching
from eastgate.cli.options import BAD_OPTION, headers_from, output_option
from eastgate.cli.output import ALLOWED, DENIED, UNDECIDED, colored, emit_json, fail, say
from eastgate.diagnostics import Diagnostic
from eastgate.diagnostics.printable import printable

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

__all__ = ["call"]

DISAGREE = 3
UNANSWERED = 4
_EXIT = (
    "Exits with 0 if it was allowed and answered, 1 if it was denied, 2 if it could not be made, "
    "3 if proxy and engine disagree, which would be a bug, 4 if it was let through and no answer came."
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
    return matching([*names, "service:"], incomplete)


@click.command(epilog=_EXIT)
@click.option(
    "--from",
    "source",
    required=True,
    metavar="SRC",
    shell_complete=_sources,
    help="sa:NS/NAME, pod:NS/NAME, spiffe://.., ip:ADDRESS or anonymous.",
)
@click.option(
    "--to", required=True, metavar="DST", shell_complete=_destinations, help="pod:NS/NAME or service:NS/NAME."
)
@click.option("--port", type=int, help="Destination port; not needed where there is one only.")
@click.argument("positional", metavar="[PATH]", required=False)
@click.option("--method", help="HTTP method; GET, or POST with --data.")
@click.option("--path", help="HTTP path, sent as it is; the same as PATH.")
@click.option("--host", help="HTTP host.")
@click.option("--header", "headers", multiple=True, metavar="K=V", help="A header; may be repeated.")
@click.option("--source-ip", metavar="ADDRESS", help="Call from this address, in 127.0.0.0/8.")
@click.option("--data", metavar="TEXT|@FILE", help="The body; @- is standard input.")
@click.option("--raw", is_flag=True, help="Send the data as it is, without HTTP.")
@click.option("--repeat", type=click.IntRange(1, 10_000), default=1, metavar="N", help="Make the call N times.")
@click.option("--timeout", type=click.FloatRange(0.01, 60), default=5.0, show_default=True, help="In seconds.")
@mesh_option
@output_option
def call(
    source: str,
    to: str,
    port: int | None,
    positional: str | None,
    method: str | None,
    path: str | None,
    host: str | None,
    headers: tuple[str, ...],
    source_ip: str | None,
    data: str | None,
    raw: bool,
    repeat: int,
    timeout: float,
    name: str,
    output: str,
) -> None:
    """Make a real mTLS call through the running mesh; say what the proxy did, and why."""
    if positional is not None and path is not None and positional != path:
        raise click.UsageError(f"two paths: {positional} and {path}")
    body = _data(data, output)
    arguments: dict[str, Any] = {
        "source": source,
        "to": to,
        "port": port,
        "source_ip": source_ip,
        "body": base64.b64encode(body).decode(),
        "raw": raw,
        "timeout": timeout,
        "color": colored() and output != "json",
    }
    if not raw:
        arguments |= {"path": positional or path, "host": host, "method": method or ("POST" if body else None)}
        arguments["headers"] = headers_from(headers, output)
    elif positional or path or host or method or headers:
        raise click.UsageError("--raw sends bytes: it has no path, method, host or headers")
    made: list[dict[str, Any]] = []
    explained: set[tuple[object, ...]] = set()
    for _ in range(repeat):
        answer = ask(name, "call", output, explain=True, **arguments)
        for call_made in answer["calls"]:
            made.append(call_made)
            if output != "json":
                same = (
                    call_made["at"],
                    call_made["verdict"],
                    call_made["agrees"],
                    (call_made["proxy"] or {}).get("decision"),
                )
                say(_describe_call(call_made, why=same not in explained))
                explained.add(same)
    if output == "json":
        emit_json({"verdict": _worst(made), "calls": made})
    elif len(made) > 1:
        say(_summary(made))
    sys.exit(_status(made))


def _data(text: str | None, output: str) -> bytes:
    if text is None or not text.startswith("@"):
        return (text or "").encode("utf-8", "surrogateescape")
    if text == "@-":
        return sys.stdin.buffer.read()
    try:
        return Path(text[1:]).read_bytes()
    except OSError as error:
        fail([Diagnostic(BAD_OPTION, f"cannot read `{text[1:]}`: {error.strerror}")], output)


def _describe_call(call: dict[str, Any], *, why: bool) -> str:
    verdict = call["verdict"] if call["made"] else "not made"
    if _unanswered(call):
        verdict = "no answer"
    painted = click.style(verdict.upper(), fg=_COLORS.get(verdict, "red"), bold=True)
    came = str(call["status"]) if call["status"] else call["error"] or "no answer"
    lines = [f"{painted}  " + printable(f"{came}  {call['at']}  {call['milliseconds']:.0f} ms")]
    proxy, engine = call["proxy"], call["engine"]
    if not why:
        return lines[0]
    if proxy is not None:
        lines.append(printable(f"  proxy:  {proxy['verdict']}: {proxy['reason']}{_position(proxy)}"))
    else:
        lines.append("  proxy:  it logged nothing")
    lines.append(printable(f"  engine: {engine['verdict']}: {engine['reason']}{_position(engine)}"))
    if call["note"]:
        lines.append(printable(f"  note:   {call['note']}"))
    if not call["agrees"]:
        loud = "PROXY AND ENGINE DISAGREE: this is not what the policies say"
        lines += ["", click.style(loud, fg="white", bg="red", bold=True)]
    if call.get("explanation"):
        lines += ["", call["explanation"], ""]
    return "\n".join(lines)


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
