"""`crds`: the definitions of the policies for API servers and editors."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from eastgate.basics.diagnostics import Code, Diagnostic
from eastgate.basics.diagnostics.printable import json_text, printable
from eastgate.basics.records import dataclass
from eastgate.cli.output import emit, emit_json, output_option, print_lines
from eastgate.settings import MeshMode

if TYPE_CHECKING:
    from eastgate.reports.crds import Webhook


# Revisions of a git repository. Each is checked out into a temporary folder.


BAD_REVISION = Code(
    "EG0401",
    "revision not read",
    "`--git` takes A..B, A...B (the merge base of A and B, compared with B) or A, compared with the current files.",
)


class RevisionsError(Exception):
    """Git could not check out a revision."""

    def __init__(self, message: str, help: str | None = None) -> None:  # noqa: A002
        super().__init__(message)
        self.diagnostic = Diagnostic(BAD_REVISION, message, None, help)


@dataclass(frozen=True, slots=True)
class Revisions:
    """Two commits; `new` None: the current files."""

    old: str
    new: str | None


def revisions_of(words: str) -> Revisions:
    """Read `A..B`, `A...B` or `A`. Raises RevisionsError."""
    since = "..." in words
    before, dots, after = words.partition("..." if since else "..")
    if not before:
        raise RevisionsError(f"`{words}` names no revision to begin with", "write --git main..HEAD")
    if not dots:
        return Revisions(_commit(before), None)
    new = _commit(after or "HEAD")
    old = _git("merge-base", _commit(before), new).strip() if since else _commit(before)
    return Revisions(old, new)


def _commit(name: str) -> str:
    return _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}", about=name).strip()


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """Yield a folder with the files of a commit: those of the current folder at that commit."""
    prefix = _git("rev-parse", "--show-prefix").strip()
    top = Path(_git("rev-parse", "--show-toplevel").rstrip("\n"))
    with TemporaryDirectory(prefix="eastgate-diff-") as folder:
        tree = Path(folder, "tree")
        tree.mkdir()
        index = {"GIT_INDEX_FILE": str(Path(folder, "index"))}
        _git("read-tree", commit, folder=top, more=index)
        _git("checkout-index", "--all", "--force", f"--prefix={tree}{os.sep}", folder=top, more=index)
        there = tree / prefix
        there.mkdir(parents=True, exist_ok=True)
        yield there


def _git(*words: str, about: str | None = None, folder: Path | None = None, more: dict[str, str] | None = None) -> str:
    try:
        run = subprocess.run(  # noqa: S603 - no shell, and revisions cannot be taken for options
            ["git", *words],  # noqa: S607 - the one that the user has
            cwd=folder,
            env={**os.environ, **(more or {})},
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise RevisionsError(f"git cannot be run: {error.strerror}") from None
    if run.returncode:
        lines = run.stderr.strip().splitlines()
        message = lines[-1] if lines else f"git knows no revision `{about}`" if about else "git could not do it"
        raise RevisionsError(message, "is it fetched? `git fetch origin main`" if about else None)
    return run.stdout


_MAX_LINE_CHARS = 10_000  # a rule that is cut into lines is hard to read, and to find


def _service(_context: click.Context, _option: click.Parameter, value: str | None) -> tuple[str, str] | None:
    if value is None:
        return None
    namespace, slash, name = value.partition("/")
    if not namespace or not slash or not name or "/" in name:
        raise click.BadParameter("write <namespace>/<name> of the Service that converts")
    return namespace, name


def _certificates(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    try:
        text = Path(value).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise click.BadParameter(printable(f"{value} cannot be read: {error}")) from None
    if not text.lstrip().startswith("-----BEGIN CERTIFICATE-----"):
        raise click.BadParameter(printable(f"{value} does not begin with a certificate (PEM)"))
    return text


@click.command(epilog="Exits with 0; 2 for an unknown kind.")
@click.option(
    "--admission",
    type=click.Choice([mode.value for mode in MeshMode]),
    help="Instead: ValidatingAdmissionPolicies for a mesh of this mode.",
)
@click.option(
    "--json-schema", is_flag=True, help="Instead: JSON Schemas for editors, of every kind that Eastgate reads."
)
@click.option(
    "--conversion-webhook",
    metavar="NAMESPACE/NAME",
    callback=_service,
    help="Service that converts between versions. Superseded versions are then served too.",
)
@click.option(
    "--conversion-ca",
    metavar="FILE",
    callback=_certificates,
    help="CA certificates (PEM) for that Service. Default: the CAs that the API server trusts.",
)
@click.option(
    "--webhooks",
    is_flag=True,
    help="Instead: ValidatingWebhookConfiguration and MutatingWebhookConfiguration for that Service.",
)
@click.option("--kind", "kinds", multiple=True, help="Print only this kind.")
@click.option("--dir", "folder", type=click.Path(file_okay=False), help="Write each to a file in this folder.")
@output_option("yaml", "json", about="Format of the manifests.")
def crds(
    admission: str | None,
    json_schema: bool,
    conversion_webhook: tuple[str, str] | None,
    conversion_ca: str | None,
    webhooks: bool,
    kinds: tuple[str, ...],
    folder: str | None,
    output: str,
) -> None:
    """Print CustomResourceDefinitions, webhooks and schemas.

    Without options, print the CustomResourceDefinitions of all policies. Options select admission policies, webhook
    configurations, or JSON Schemas for editors instead.
    """
    if admission is not None and json_schema:
        raise click.UsageError("write --admission, or --json-schema")
    if json_schema:
        _editor_schemas(kinds, folder)
        return
    if conversion_ca is not None and conversion_webhook is None:
        raise click.UsageError("--conversion-ca is for a --conversion-webhook")
    from eastgate.reports.crds import Webhook, admission_policies, definitions

    webhook = Webhook(*conversion_webhook, conversion_ca) if conversion_webhook else None
    if webhooks:
        if webhook is None or admission is not None or kinds:
            raise click.UsageError("--webhooks is for a --conversion-webhook, and for all kinds")
        _configurations(webhook, folder, output)
        return
    made = definitions(webhook)
    names = {manifest["spec"]["names"]["kind"]: manifest["metadata"]["name"] for manifest in made}
    wanted = {names[kind] for kind in _check_names(kinds, names)}
    if admission is not None:
        made = [manifest for manifest in admission_policies(MeshMode(admission)) if _resource(manifest) in wanted]
    else:
        made = [manifest for manifest in made if manifest["metadata"]["name"] in wanted]
    if folder is None:
        _print(made, output)
    else:
        _write({f"{_stem(manifest)}.{output}": _text([manifest], output) for manifest in made}, folder)


def _configurations(webhook: Webhook, folder: str | None, output: str) -> None:
    from eastgate.controller.admission.configuration import webhook_configurations

    made = webhook_configurations(webhook)
    if folder is None:
        _print(made, output)
    else:
        files = {f"{manifest['kind'].lower()}.{output}": _text([manifest], output) for manifest in made}
        _write(files, folder)


def _check_names(asked: Sequence[str], there_are: Sequence[str] | dict[str, str]) -> list[str]:
    """Return the selected kinds, in any letter case; without a selection, all kinds."""
    by_name = {kind.lower(): kind for kind in there_are}
    for kind in asked:
        if kind.lower() not in by_name:
            raise click.UsageError(f"there is no kind {kind}: write {', '.join(sorted(set(there_are)))}")
    return [by_name[kind.lower()] for kind in asked] or list(there_are)


def _resource(policy: dict[str, Any]) -> str:
    """Return the definition behind an admission policy or its binding: its name without the version."""
    plural, _, group = policy["metadata"]["name"].split(".", 2)
    return f"{plural}.{group}"


def _stem(manifest: dict[str, Any]) -> str:
    suffix = "-binding" if manifest["kind"].endswith("Binding") else ""
    return f"{manifest['metadata']['name']}{suffix}"


def _editor_schemas(kinds: Sequence[str], folder: str | None) -> None:
    from eastgate.reports.crds import combine_schemas, editor_schemas, file_name

    made = editor_schemas()
    wanted = set(_check_names(kinds, [kind.kind for kind, _ in made]))
    made = [(kind, schema) for kind, schema in made if kind.kind in wanted]
    if folder is not None:
        files = {file_name(kind): schema for kind, schema in made} | {"all.json": combine_schemas(made)}
        _write({name: _text([schema], "json") for name, schema in files.items()}, folder)
    else:
        emit_json(made[0][1] if len(made) == 1 else combine_schemas(made))


def _print(made: list[dict[str, Any]], output: str) -> None:
    if output == "json":
        emit_json({"apiVersion": "v1", "kind": "List", "items": made})
    else:
        emit(_text(made, output))


def _text(made: list[dict[str, Any]], output: str) -> str:
    if output == "json":
        return "".join(json_text(manifest, indent=2) + "\n" for manifest in made)
    import yaml

    from eastgate.reading.manifests.heads import PrintableDumper

    class Anchorless(PrintableDumper):
        """A YAML writer without anchors: an object that occurs twice is written twice."""

        def ignore_aliases(self, _data: object) -> bool:
            return True

    return str(
        yaml.dump_all(
            made, Dumper=Anchorless, sort_keys=False, width=_MAX_LINE_CHARS, allow_unicode=True, explicit_start=True
        )
    )


def _write(files: dict[str, str], folder: str) -> None:
    for name, text in files.items():
        path = Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    print_lines(printable(f"{len(files)} files in {folder}"), err=True)
