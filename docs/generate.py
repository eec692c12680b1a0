"""The pages of the site that are made from the code: commands, diagnostics, names of the Python API, unread kinds.

`docs/website.py` writes them when it builds the site. None of them is committed.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType

import click

import eastgate
from eastgate.basics.diagnostics import Code
from eastgate.cli import main
from eastgate.cli.catalogue import all_codes, chapters
from eastgate.cli.helping import EXAMPLES, OPTION_GROUPS, OTHER, REQUIRED, group_of
from eastgate.cluster.unread import KINDS, EnforcementPlane, TargetField, UnreadEffect, UnreadKind

_GUIDES = {
    "EG1044": "[Policies that nothing deploys](../../guides/repositories.md#policies-that-nothing-deploys)",
}
MODULES = ("decisions", "describe", "diff", "graph", "lint", "manifests", "mesh", "tables")
_CAN = {
    UnreadEffect.DENY: "deny what is allowed here",
    UnreadEffect.CHANGE: "change what a request is, or what decides it",
    UnreadEffect.NONE: "nothing",
}
_AT = {
    EnforcementPlane.NETWORK: "the network",
    EnforcementPlane.MESH: "proxies of workloads",
    EnforcementPlane.GATEWAY: "gateways",
}
_BY = {
    TargetField.POD_SELECTOR: "`podSelector`",
    TargetField.ENDPOINT_SELECTOR: "`endpointSelector`",
    TargetField.SUBJECT: "`subject`",
    TargetField.CALICO: "`selector`, `namespaceSelector`",
    TargetField.USER_NETWORK: "its namespace, `namespaceSelector`",
    TargetField.MEMBERS: "its namespace, `members`, `memberSelectors`",
    TargetField.SELECTOR: "`selector`, `targetRefs`, the root namespace",
    TargetField.WORKLOAD_SELECTOR: "`workloadSelector`, the root namespace",
    TargetField.TARGET_REFS: "`targetRefs`",
    TargetField.NAMESPACE: "all of its namespace",
    TargetField.CLUSTER: "everything",
    TargetField.UNKNOWN: "cannot be located",
}


def pages() -> Iterator[tuple[str, str]]:
    """Yield the path of each generated page below `docs`, and its text."""
    yield "reference/unread-kinds.md", _unread_kinds()
    yield "reference/python-names.md", _python_names()
    yield "reference/diagnostics/index.md", _diagnostics()
    for chapter, modules in chapters().items():
        for code in all_codes(modules):
            yield f"reference/diagnostics/{code.id.lower()}.md", _diagnostic(code, chapter)
    yield "reference/commands/index.md", _commands()
    for name, command in _verbs():
        yield f"reference/commands/{name}.md", _command(name, command)


# Commands


def _verbs() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(main)
    for name in main.list_commands(context):
        if command := main.get_command(context, name):
            yield name, command


def _commands() -> str:
    rows = [f"| [`eastgate {name}`]({name}.md) | {_first_paragraph(command)} |" for name, command in _verbs()]
    return "\n".join(
        [
            "# Commands",
            "",
            "Each page lists the options of one command. `eastgate COMMAND --help` prints the same.",
            "[Exit statuses](../exit-status.md) are the same for all commands that answer a question.",
            "",
            "| command | purpose |",
            "|---|---|",
            *rows,
            "",
        ]
    )


def _command(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=f"eastgate {name}")
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [f"# eastgate {name}", "", *(f"{part}\n" for part in _paragraphs(command))]
    lines += ["```sh", f"eastgate {name} {usage}", "```", ""]
    if examples := EXAMPLES.get(name):
        lines += ["## Examples", "", "```sh", *(f"eastgate {example}" for example in examples), "```", ""]
    if command.epilog:
        lines += ["## Exit status", "", _prose(command.epilog), ""]
    records = [(param, param.get_help_record(context)) for param in command.params]
    groups: dict[str, list[str]] = {group: [] for group in (REQUIRED, *OPTION_GROUPS.values(), OTHER)}
    for param, record in records:
        if record is not None and record[1]:
            groups[group_of(name, param)].append(f"| {_option(record[0])} | {_prose(record[1])} |")
    for group, rows in groups.items():
        lines += [f"## {group} options", "", "| option | meaning |", "|---|---|", *rows, ""] if rows else []
    return "\n".join(lines)


def _paragraphs(command: click.Command) -> list[str]:
    text = inspect.cleandoc(command.help or "").replace("\b", "")
    return [_prose(part) for part in re.split(r"\n\s*\n", text) if part.strip()]


def _first_paragraph(command: click.Command) -> str:
    return _paragraphs(command)[0]


def _option(names: str) -> str:
    return ", ".join(f"<code>{_cell(name)}</code>" if "|" in name else f"`{name}`" for name in names.split(", "))


def _prose(text: str) -> str:
    """Return a text of a help page as Markdown: options and names of files in code font."""
    text = " ".join(text.split())
    parts = text.split("`")
    for index in range(0, len(parts), 2):
        parts[index] = re.sub(r"(?<![\w`-])(--[a-z][a-z-]+)", r"`\1`", _cell(parts[index]))
    return "`".join(parts)


def _cell(text: str) -> str:
    return text.replace("&", "&amp;").replace("|", "&#124;").replace("<", "&lt;").replace("*", "&#42;")


# Diagnostics


def _diagnostics() -> str:
    lines = [
        "# Diagnostics",
        "",
        "Every diagnostic has a code, the place in a file that it is about, and help where Eastgate knows a fix.",
        "Eastgate never ignores a policy that it cannot understand. A question about such a policy has no answer (exit",
        "status 2). `eastgate lint` reports errors with status 1. If a part was left out, an answer is partial (status",
        "3): [Exit statuses](../exit-status.md).",
        "`eastgate lint --explain EG1201` prints the text of a page below.",
    ]
    for chapter, modules in chapters().items():
        lines += ["", f"## {chapter}", "", "| code | severity | meaning |", "|---|---|---|"]
        lines += [
            f"| [{code.id}]({code.id.lower()}.md) | {code.severity} | {_cell(code.title)} |"
            for code in all_codes(modules)
        ]
    return "\n".join(lines) + "\n"


def _diagnostic(code: Code, chapter: str) -> str:
    anchor = re.sub(r"[^\w\- ]", "", chapter.lower()).replace(" ", "-")
    lines = [
        f"# {code.id}: {code.title}",
        "",
        f"Severity: **{code.severity}**. Chapter: [{chapter}](index.md#{anchor}). `eastgate lint --explain {code.id}`",
        "prints this text.",
        "",
        code.explanation,
        "",
    ]
    for title, manifest in (("Wrong", code.wrong), ("Right", code.right)):
        lines += [f"## {title}", "", "```yaml", manifest.rstrip(), "```", ""] if manifest else []
    if guide := _GUIDES.get(code.id):
        lines += [f"{guide} has the details.", ""]
    if code.id.startswith("EG6") or str(code.severity) != "error":
        lines += ["To accept a finding, see [Suppress a finding](../../guides/linting.md#suppress-a-finding).", ""]
    return "\n".join(lines)


# Kinds that Eastgate does not read


def _unread_kinds() -> str:
    lines = [
        "# Kinds that Eastgate does not read",
        "",
        "Eastgate knows these kinds and does not evaluate them. An answer that an object of such a kind could change",
        "is not given as certain: [Unread policies](../concepts/unread.md) describes how.",
        "",
        "| group | kind | can | at | target |",
        "|---|---|---|---|---|",
    ]
    kinds = sorted(KINDS, key=lambda one: (one.group, one.kind))
    lines += [
        f"| {one.group} | {one.kind} | {_can(one)} | {_AT[one.plane]} | {_BY[one.target_field]} |" for one in kinds
    ]
    return "\n".join(lines) + "\n"


def _can(kind: UnreadKind) -> str:
    return f"{_CAN[kind.effect]} ({kind.note})" if kind.note else _CAN[kind.effect]


# Python


def _python_names() -> str:
    lines = [
        "# Names of the Python API",
        "",
        "This page lists every public name with its signature and docstring. [The Python API](python-api.md) explains",
        "them by task, with examples.",
        "",
    ]
    for module in (eastgate, *(import_module(f"eastgate.{name}") for name in MODULES)):
        lines += [f"## {module.__name__}", ""]
        for name in module.__all__:
            if name != "__version__":
                lines += _name(module, name)
    return "\n".join(lines) + "\n"


def _name(module: ModuleType, name: str) -> list[str]:
    value = getattr(module, name)
    lines = [f"### {module.__name__}.{name}", ""]
    if inspect.isroutine(value) or (inspect.isclass(value) and not issubclass(value, Exception)):
        lines += ["```python", f"{name}{_signature(value)}", "```", ""]
    lines += [_docstring(value) or f"An instance of `{type(value).__name__}`.", ""]
    if inspect.isclass(value):
        for attribute, member in vars(value).items():
            about = _docstring(member)
            if not attribute.startswith("_") and about and (inspect.isroutine(member) or isinstance(member, property)):
                shown = "" if isinstance(member, property) else _signature(member)
                lines += [f"`{attribute}{shown}`", f":   {about.replace(chr(10), chr(10) + '    ')}", ""]
    return lines


def _signature(value: object) -> str:
    function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
    try:
        text = str(inspect.signature(function))  # type: ignore[arg-type] # a class or a routine
    except (TypeError, ValueError):
        return "(…)"
    return re.sub(r"<[^<>]*>", "…", text).replace("'", "")


def _docstring(value: object) -> str:
    """Return the docstring, unless it is the signature that a dataclass writes for itself."""
    text = inspect.cleandoc(getattr(value, "__doc__", None) or "")
    if isinstance(value, str | int | tuple) or re.match(r"\w+\(.*\)( -> .*)?$", text, re.DOTALL):
        return ""
    return text
