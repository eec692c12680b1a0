"""The diagnostics of commands that talk to a mesh."""

from __future__ import annotations

from eastgate.basics.diagnostics import Code

NO_MESH = Code(
    "EG0110",
    "the mesh does not answer",
    "`call` and `why` without -f ask a mesh that is running. None of that name is, or it stopped before it answered.",
)
MESH_NOT_STARTED = Code(
    "EG0111",
    "the mesh could not be started",
    "A mesh of that name is running already, its network is taken, or this machine lacks what a mesh needs.",
)
NOT_A_LOG_LINE = Code(
    "EG0112",
    "not a line of a proxy's log",
    "`why` reads the JSON that the proxies of Eastgate write about each decision, and the access logs of Istio's "
    "Envoys and of ztunnel. Text before and after it is no matter; a line of something else, or half a line, is.",
)
NO_DECISION = Code(
    "EG0113",
    "a line that tells of no decision",
    "The line is of a proxy of Eastgate, and tells of a connection that something else was decided about in a line of "
    "its own: a denial, a request or a handshake. That line says why.",
)
NO_NUMBER = Code(
    "EG0114",
    "no decision of that number",
    "A mesh numbers its decisions from 1 and keeps the latest of them. `up` shows the numbers; this one has not been "
    "given yet, or is too long ago.",
)
MISSING_EXTRA = Code(
    "EG0115",
    "packages of the extra `mesh` are missing",
    "`up`, `authorizer`, `controller`, `inject` and `bootstrap` run or configure proxies. They need Envoy, gRPC and a "
    "few other packages, which the extra `mesh` installs. All other commands work without them.",
)
