"""The options of a question, as the record `asked`: the source, the destination, and the request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eastgate.authority.questions import Question, QuestionError
from eastgate.basics.records import dataclass
from eastgate.cli import complete
from eastgate.cli.options import bad_option, issuer_keys, jwks_option, pairs, record
from eastgate.cli.output import fail
from eastgate.cluster.ends import Destination, Source, parse_destination, parse_source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eastgate.reading.jwt import KeySource
    from eastgate.settings import Settings

_ANSWERS = ("allow", "deny", "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The options of a question, as they are written."""

    source: str
    to: str
    port: str | None
    method: str | None
    path: str | None
    host: str | None
    sni: str | None
    headers: tuple[str, ...]
    http_protocol: str | None
    source_ip: str | None
    protocol: str | None
    forwarded_for: str | None
    plaintext: bool
    claims: tuple[str, ...]
    no_token: bool
    token: str | None
    jwks: tuple[str, ...]
    client_certificate: str | None
    mcp_method: str | None
    tool: str | None
    external_auth: tuple[str, ...]

    def question(self, settings: Settings, *, in_namespace: bool = False) -> Question:
        """Return the question, or print the error and exit. A named port is left out.

        `in_namespace`: the namespace of the settings was given with the question.
        """
        answers = pairs(self.external_auth, "--external-auth")
        for authorizer, answer in answers.items():
            if answer not in _ANSWERS:
                way_out = f"write allow, deny or error: --external-auth {authorizer}=allow"
                bad_option(f"`{answer}` is no answer of an authorizer", way_out)
        certificate = self.client_certificate
        return Question(
            source_from(self.source, settings, in_namespace=in_namespace),
            destination_from(self.to, settings),
            port=_port(self.port),
            method=self.method,
            path=self.path,
            host=self.host,
            sni=self.sni,
            headers=headers_from(self.headers),
            mcp_method=self.mcp_method,
            tool=self.tool,
            source_ip=self.source_ip,
            protocol=self.protocol,
            forwarded_for=self.forwarded_for,
            plaintext=self.plaintext,
            http_protocol=self.http_protocol,
            claims={name: _claim(value) for name, value in pairs(self.claims, "--claim").items()} or None,
            token=_token(self.token),
            no_token=self.no_token,
            certificate=Path(certificate).read_text("utf-8", "replace") if certificate is not None else None,
            external_auth=answers,
        )

    def keys(self) -> KeySource | None:
        """Return the keys of token issuers: those given, and with a token, those that issuers publish."""
        return issuer_keys(self.jwks) if self.jwks or self.token is not None else None


question_options = record(
    "asked",
    Asked,
    click.option(
        "--from",
        "source",
        required=True,
        metavar="SRC",
        shell_complete=complete.sources,
        help="sa:NS/NAME, pod:NS/NAME, spiffe://.., id:DNS-NAME, ip:ADDRESS or anonymous.",
    ),
    click.option(
        "--to",
        required=True,
        metavar="DST",
        shell_complete=complete.destinations,
        help="pod:NS/NAME, service:NS/NAME, gateway:NS/NAME, route:NS/NAME, backend:NS/NAME, authconfig:NS/NAME, "
        "host:NAME or ip:ADDRESS.",
    ),
    click.option("--port", metavar="PORT", help="Destination port: its number, or its name."),
    click.option("--method", help="HTTP method."),
    click.option("--path", help="HTTP path."),
    click.option("--host", help="HTTP host."),
    click.option("--sni", help="TLS server name."),
    click.option("--header", "headers", multiple=True, metavar="K=V", help="HTTP header."),
    click.option("--http-protocol", metavar="VERSION", help="HTTP version: HTTP/1.1 (default), HTTP/2, .."),
    click.option("--source-ip", metavar="ADDRESS", help="Address of the caller."),
    click.option("--protocol", type=click.Choice(["tcp", "udp", "sctp"]), help="Transport protocol. Default: tcp."),
    click.option("--forwarded-for", metavar="ADDRESS", help="Address of the client, as proxies in front report it."),
    click.option("--plaintext", is_flag=True, help="The connection has no mTLS, so that the caller has no identity."),
    click.option("--claim", "claims", multiple=True, metavar="K=V", help="Claim of the verified token."),
    click.option("--no-token", is_flag=True, help="The request has no token."),
    click.option("--token", metavar="TOKEN|@FILE", help="Token of the request. The keys of its issuer verify it."),
    jwks_option,
    click.option(
        "--client-certificate",
        type=click.Path(exists=True, dir_okay=False),
        metavar="FILE",
        help="Certificate of the client, in PEM.",
    ),
    click.option("--mcp-method", help="MCP method."),
    click.option("--tool", help="MCP tool."),
    click.option(
        "--external-auth",
        multiple=True,
        metavar="SVC.NS:PORT=ANSWER",
        help="Answer of an external authorizer: allow, deny or error.",
    ),
)


def source_from(text: str, settings: Settings, *, in_namespace: bool = False) -> Source:
    """Return the source in an option, or print the error and exit."""
    try:
        return parse_source(text, settings.namespace, is_given=in_namespace)
    except QuestionError as error:
        fail(error.diagnostics)


def destination_from(text: str, settings: Settings) -> Destination:
    """Return the destination in an option, or print the error and exit."""
    try:
        return parse_destination(text, settings.namespace)
    except QuestionError as error:
        fail(error.diagnostics)


def headers_from(values: Sequence[str]) -> dict[str, list[str]] | None:
    """Return all values of each header in `--header`, or None."""
    headers: dict[str, list[str]] = {}
    for header in values:
        for name, value in pairs([header], "--header").items():
            headers.setdefault(name, []).append(value)
    return headers or None


def _port(text: str | None) -> int | None:
    """Return the number of a port; None for a name, which only the destination knows."""
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def _claim(value: str) -> object:
    """Parse a claim as it is written; lists and objects are JSON."""
    if value.startswith(("[", "{")):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return value


def _token(value: str | None) -> str | None:
    """Read a token, or `@` and a file with it, which keeps the token out of the process list."""
    if value is None or not value.startswith("@"):
        return value
    try:
        return Path(value[1:]).read_text("utf-8").strip()
    except (OSError, ValueError):
        bad_option(f"cannot read the token from `{value[1:]}`")
