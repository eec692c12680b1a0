"""The diagnostics of commands that talk to a mesh."""

from __future__ import annotations

from eastgate.basics.diagnostics import Code

NO_MESH = Code(
    "EG0110",
    "the mesh does not answer",
    "`call` and `why` without -f ask a running mesh. No mesh of that name runs, or it stopped before it answered.",
)
MESH_NOT_STARTED = Code(
    "EG0111",
    "the mesh could not be started",
    "A mesh of that name already runs, its network is in use, or this machine lacks a prerequisite of a mesh.",
)
NOT_A_LOG_LINE = Code(
    "EG0112",
    "not a line of a proxy's log",
    "`why` reads the JSON that Eastgate's proxies write for each decision, and the access logs of Istio's Envoys and "
    "of ztunnel. Text before and after a record is ignored. A line of another program, or half a line, is an error.",
)
NO_DECISION = Code(
    "EG0113",
    "a line without a decision",
    "A proxy of Eastgate wrote the line, but it only reports a connection. The decision is in another line: a denial, "
    "a request or a handshake. Give that line.",
)
NO_NUMBER = Code(
    "EG0114",
    "no decision with that number",
    "A mesh numbers its decisions from 1 and keeps the latest ones. `up` prints the numbers. This number is not in use "
    "yet, or the decision is too old.",
)
MISSING_EXTRA = Code(
    "EG0115",
    "packages of the extra `mesh` are missing",
    "`up`, `authorizer`, `controller`, `inject` and `bootstrap` run or configure proxies. They need Envoy, gRPC and a "
    "few other packages, which the extra `mesh` installs. All other commands work without them.",
)
