"""Converts the rules of a GEP-3779 policy to Linkerd's authorizations: on Servers, or on routes for HTTP."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product

from eastgate.cluster import Selector, account_of
from eastgate.convert import codes
from eastgate.convert.gep_reading import Account, Gep, GepRule, NamedCaller, SpiffeIdentity, WholeNamespace
from eastgate.convert.model import Job, Manifest, metadata_of
from eastgate.convert.selectors import write_selector
from eastgate.dialects.linkerd import GROUP
from eastgate.reading.manifests import Document, Plain

_MOST_MATCHES = 8


def _manifest(
    gep: Gep, job: Job, kind: str, version: str, name: str, spec: Manifest, others: Sequence[Document] = ()
) -> str:
    chosen = job.name(f"{kind}.{GROUP}", gep.namespace, name.replace(".", "-") if kind == "Server" else name)
    manifest: Manifest = {
        "apiVersion": f"{GROUP}/{version}",
        "kind": kind,
        "metadata": metadata_of(gep.document, chosen, gep.written_namespace),
        "spec": spec,
    }
    job.write(gep.document, manifest, others)
    return chosen


def server_of(gep: Gep, selector: Selector, port: int, job: Job, others: Sequence[Document] = ()) -> str:
    """Return a Server, closed but for what is authorized. `others` are further policies that share it."""
    spec: Manifest = {"podSelector": write_selector(selector), "port": port, "accessPolicy": "deny"}
    return _manifest(gep, job, "Server", "v1beta3", f"{gep.name}-{port}", spec, others)


def authorize(gep: Gep, number: int, rule: GepRule, servers: Sequence[str], job: Job) -> None:
    """Authorize the callers of a rule: on the Servers, or on a route of theirs."""
    name = f"{gep.name}-rule-{number}"
    refs: list[Plain] = []
    if rule.callers is not None:
        identities: list[Plain] = list(dict.fromkeys(_identity(caller, job) for caller in rule.callers))
        chosen = _manifest(gep, job, "MeshTLSAuthentication", "v1alpha1", name, {"identities": identities})
        refs.append({"group": GROUP, "kind": "MeshTLSAuthentication", "name": chosen})
    targets = [("Server", server) for server in servers]
    if rule.paths_span is not None:
        message = "Linkerd compares paths as they are sent: dot segments, double and encoded slashes stay in them"
        job.lose(codes.PATHS, message, rule.paths_span, help="let only what normalizes paths, a gateway, call this")
    if rule.is_http:
        targets = [("HTTPRoute", _route(gep, name, list(_matches(rule)), servers, job))]
    for kind, target in targets:
        spec: Manifest = {
            "targetRef": {"group": GROUP, "kind": kind, "name": target},
            "requiredAuthenticationRefs": refs,
        }
        own = name if len(targets) == 1 else f"{name}-{target}"
        _manifest(gep, job, "AuthorizationPolicy", "v1alpha1", own, spec)


def catch_all(gep: Gep, servers: Sequence[str], job: Job, others: Sequence[Document] = ()) -> None:
    """Return a route for the rest: without it, a Server with routes answers what none of them matches with 404."""
    _route(gep, f"{gep.name}-rest", [{"path": {"type": "PathPrefix", "value": "/"}}], servers, job, others)


def _identity(caller: NamedCaller, job: Job) -> str:
    """Return Linkerd's name of a caller. A SPIFFE ID of another trust domain it knows as such."""
    match caller:
        case Account(namespace, name):
            return job.settings.mesh_name(namespace, name)
        case WholeNamespace(namespace):
            return job.settings.mesh_name(namespace, "*")
        case SpiffeIdentity(spiffe):
            account = account_of(spiffe)
            own = account is not None and account[0] == job.settings.trust_domain
            return job.settings.mesh_name(*account[1:]) if account is not None and own else spiffe


# Routes


def _route(
    gep: Gep,
    name: str,
    matches: Sequence[Manifest],
    servers: Sequence[str],
    job: Job,
    others: Sequence[Document] = (),
) -> str:
    parents: list[Plain] = [{"group": GROUP, "kind": "Server", "name": server} for server in servers]
    chunks = [list(matches[start : start + _MOST_MATCHES]) for start in range(0, len(matches), _MOST_MATCHES)]
    rules: list[Plain] = [{"matches": list[Plain](chunk)} for chunk in chunks]
    return _manifest(gep, job, "HTTPRoute", "v1beta3", name, {"parentRefs": parents, "rules": rules}, others)


def _matches(rule: GepRule) -> Iterator[Manifest]:
    """Build matches of ANY path with ANY method."""
    for path, method in product(rule.paths or (None,), rule.methods or (None,)):
        match: Manifest = {"path": _path(path) if path is not None else {"type": "PathPrefix", "value": "/"}}
        if method is not None:
            match["method"] = method
        yield match


def _path(path: str) -> Manifest:
    """Build a path match. Linkerd's prefixes mean whole segments; what is meant here is any text, which takes an
    expression.
    """
    if path in ("*", "/*"):
        return {"type": "PathPrefix", "value": "/"}
    if path.endswith("*"):
        return {"type": "RegularExpression", "value": f"{_escaped(path[:-1])}.*"}
    if path.startswith("*/"):
        # The longer first: Linkerd's proxy takes the first alternative that matches, which must be all of the path.
        return {"type": "RegularExpression", "value": f"/.*{_escaped(path[1:])}|{_escaped(path[1:])}"}
    if path.startswith("*"):
        return {"type": "RegularExpression", "value": f"/.*{_escaped(path[1:])}"}
    return {"type": "Exact", "value": path}


def _escaped(text: str) -> str:
    return re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", text)
