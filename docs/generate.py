"""Write the pages that are made from the code: `make docs`. A test checks that they are up to date."""

from __future__ import annotations

from pathlib import Path

from eastgate.catalogue import CHAPTERS, all_codes
from eastgate.unconsidered import KINDS, By, Influence, Plane

ERRORS = Path(__file__).parent / "errors.md"
UNREAD = Path(__file__).parent / "unread.md"

_CAN = {
    Influence.DENY: "deny what is allowed here",
    Influence.CHANGE: "change what a request is, or what decides it",
    Influence.NONE: "nothing",
}
_AT = {
    Plane.NETWORK: "the network",
    Plane.MESH: "proxies of workloads",
    Plane.GATEWAY: "gateways",
}
_BY = {
    By.POD_SELECTOR: "`podSelector`",
    By.ENDPOINT_SELECTOR: "`endpointSelector`",
    By.SUBJECT: "`subject`",
    By.SELECTOR: "`selector`, `targetRefs`, the root namespace",
    By.WORKLOAD_SELECTOR: "`workloadSelector`, the root namespace",
    By.TARGET_REFS: "`targetRefs`",
    By.NAMESPACE: "all of its namespace",
    By.CLUSTER: "everything",
    By.UNKNOWN: "cannot be located",
}
_INTRODUCTION = """\
# What an answer could not consider

Eastgate reads [four policy APIs](../README.md). A folder may have objects of other kinds that decide or change who may
talk to whom, and policies with errors. Neither is ever left out silently.

## Kinds that are not read

The table below lists them, in whatever version. An answer that such an object could change says so:

```console
$ eastgate check -f manifests --from sa:shop/web --to pod:shop/cart --port 8080
ALLOW (identity policies only)  AuthorizationPolicy/shop/cart-from-web rule 0 allows it  (manifests/policies.yaml:11)
not considered: 8 NetworkPolicies, of which 1 selects this pod: manifests/cart-networkpolicy.yaml:1
```

The exit status is 3: the answer is about what was read. In `-o json`, `complete` is false and `unconsidered` lists the
objects: group, kind, namespace and name, what they `can` do (`deny`, `change`), `at` which end of the question
(`destination`, `source`), whether they are `located`, file and line.

- An object counts where its target is, or may be, an end of the question. What selects neither the pods that are asked
  about nor, where it is about egress, those of the caller, changes nothing, and the answer is the plain one.
- A service account stands for all its pods, and where no manifest has one, for a pod of its namespace with any labels.
  `anonymous`, `ip:` (but for a pod's address) and identities of other trust domains are callers outside of the cluster.
- The pods of a Gateway are in no manifest: whatever selects pods of its namespace may select them. Kinds that act at
  gateways count for questions about gateways, routes and backends.
- A deny stays a deny, with exit status 1, where everything that was left out can only deny more. It is told even so.
- An object whose target cannot be located could be about anything, and then an allow is no answer: exit status 2,
  EG0121. So is a kind in a group that nobody knows whose name says that it decides (`acme.example` `NetworkPolicy`).

`--unread` says it otherwise, on every command that reads manifests:

| `--unread` | |
|---|---|
| (not given) | exit status 2 where an allow could be a deny and the object cannot be located, otherwise an answer with exit status 3 |
| `error` | exit status 2 for every answer that could change |
| `warn` | an answer with exit status 3 for every answer that could change |
| `ignore` | they count for nothing, and only JSON lists them |

| command | |
|---|---|
| `check`, `explain` | as above |
| `describe` | says it under *Not considered*, whoever the caller may be, and ends with 3 or 2 |
| `get` | lists everything, and notes on standard error what is not read |
| `test` | a case whose answer what is not read could change fails; `unread: ignore` (or `warn`) in the table's `spec`, or `--unread`, does without |
| `lint` | policies at proxies and gateways are errors (EG1310, exit status 2), others are worth knowing (EG1311) |
| `convert` | names them; exit status 3 where they are policies at proxies or gateways |
| `up` | tells what is not enforced; nothing starts where an object that could deny cannot be located, unless `--unread warn` |
| `call`, `why` | tell it with the explanation |

## Policies with errors

A policy that cannot be read closes what it targets, and nothing else. A question about that has no answer: exit status
2, with the errors of that policy and EG0120. Questions about everything else are answered, and say how many policies
cannot be read.

- Its targets are its `targetRefs`, its selector or its subject. Where those cannot be read, or the error is in them, it
  is all of its namespace; where the namespace cannot be read, or nobody knows whether the kind has one, everything.
- An authentication of Linkerd's closes what the policies that refer to it target.
- `--strict` is the other way: any error stops everything. `lint`, `convert` and `why -f` are always so. Errors in anything but
  a policy stop everything too: without it nobody knows what exists.
- `test` fails for policies with errors that a table does not list under `rejects`, and decides the cases that are about
  something else.
- In a [mesh](mesh.md) the ports are closed. A policy that was good before stays in force as it was.

## The kinds

| group | kind | can | at | target |
|---|---|---|---|---|
"""


def unread_page() -> str:
    """The catalogue of kinds that are not read."""
    rows = [
        f"| {one.group} | {one.kind} | {_CAN[one.influence]} | {_AT[one.plane]} | {_BY[one.by]} |"
        for one in sorted(KINDS, key=lambda one: (one.group, one.kind))
    ]
    return _INTRODUCTION + "\n".join(rows) + "\n"


def errors_page() -> str:
    """The catalogue of diagnostics."""
    lines = [
        "# Diagnostics",
        "",
        "Every diagnostic has a code, the place that it is about, and where one can be given, what to write instead.",
        "Errors end a command with status 2, because a policy that can't be understood is never ignored. This page is",
        "made from the catalogue in the code (`make docs`).",
    ]
    for chapter, modules in CHAPTERS.items():
        lines += ["", f"## {chapter}", ""]
        for code in all_codes(modules):
            severity = "" if code.severity == "error" else f" ({code.severity})"
            lines += [f"### {code.id}: {code.title}{severity}", "", code.explanation, ""]
        del lines[-1]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    ERRORS.write_text(errors_page(), encoding="utf-8")
    UNREAD.write_text(unread_page(), encoding="utf-8")
