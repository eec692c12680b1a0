"""Write the pages that are made from the code: `make docs`. A test checks that they are up to date."""

from __future__ import annotations

from pathlib import Path

from eastgate.cli.catalogue import all_codes, chapters
from eastgate.cluster.unread import KINDS, EnforcementPlane, TargetField, UnreadEffect, UnreadKind

ERRORS = Path(__file__).parent / "errors.md"
UNREAD = Path(__file__).parent / "unread.md"

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
_ROWS = "| group | kind | can | at | target |\n|---|---|---|---|---|\n"


def _can(kind: UnreadKind) -> str:
    return _CAN[kind.effect] + (f" ({kind.note})" if kind.note else "")


def unread_page() -> str:
    """The page on what is not read, with the catalogue of kinds at its end."""
    rows = [
        f"| {one.group} | {one.kind} | {_can(one)} | {_AT[one.plane]} | {_BY[one.target_field]} |"
        for one in sorted(KINDS, key=lambda one: (one.group, one.kind))
    ]
    prose = UNREAD.read_text(encoding="utf-8").partition(_ROWS)[0]
    return prose + _ROWS + "\n".join(rows) + "\n"


def _can(kind: UnreadKind) -> str:
    return f"{_CAN[kind.effect]} ({kind.note})" if kind.note else _CAN[kind.effect]


def errors_page() -> str:
    """The catalogue of diagnostics."""
    lines = [
        "# Diagnostics",
        "",
        "Every diagnostic has a code, the place that it is about, and where one can be given, what to write instead.",
        "Errors end a command with status 2, because a policy that can't be understood is never ignored. This page is",
        "made from the catalogue in the code (`make docs`).",
    ]
    for chapter, modules in chapters().items():
        lines += ["", f"## {chapter}", ""]
        for code in all_codes(modules):
            severity = "" if code.severity == "error" else f" ({code.severity})"
            lines += [f"### {code.id}: {code.title}{severity}", "", code.explanation, ""]
            for title, manifest in (("Wrong:", code.wrong), ("Right:", code.right)):
                lines += [title, "", "```yaml", manifest.rstrip(), "```", ""] if manifest else []
        del lines[-1]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    ERRORS.write_text(errors_page(), encoding="utf-8")
    UNREAD.write_text(unread_page(), encoding="utf-8")
