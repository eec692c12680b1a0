"""Converts the rules of a GEP-3779 policy to Istio's: callers to `from`, operations to `to`.

If Istio can only express something wider, an ALLOW becomes narrower and a DENY wider.
"""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.basics.diagnostics.spans import Span
from eastgate.convert import codes
from eastgate.convert.gep_reading import Account, Gep, GepRule, NamedCaller, SpiffeIdentity, WholeNamespace
from eastgate.convert.model import Assumption, Job, Manifest
from eastgate.reading.manifests import Plain

_EVERY_DOMAIN = "cluster.local"  # in a principal Istio reads it as its own trust domain and the aliases
_PATHS_HELP = (
    "set pathNormalization: {normalization: MERGE_SLASHES} in the mesh, refuse encoded slashes and needlessly encoded "
    "characters (%40 for @), and add --assume istio-paths"
)


def istio_rules(gep: Gep, job: Job) -> list[Plain]:
    """Convert the rules. A rule that matches nothing is left out, which changes nothing."""
    converted = (_rule(rule, gep, job) for rule in gep.rules if not rule.never)
    return [rule for rule in converted if rule is not None]


def _rule(rule: GepRule, gep: Gep, job: Job) -> Manifest | None:
    plain: Manifest = {}
    if rule.callers is not None:
        principals = list(dict.fromkeys(name for caller in rule.callers for name in _principals(caller, gep, job)))
        if not principals:
            return None
        plain["from"] = [{"source": {"principals": list[Plain](principals)}}]
    operation: Manifest = {}
    if rule.ports is not None:
        operation["ports"] = [str(port) for port in rule.ports]
    if rule.methods is not None:
        operation["methods"] = list[Plain](rule.methods)
    if rule.paths is not None:
        operation["paths"] = list[Plain](rule.paths)
    if operation:
        plain["to"] = [{"operation": operation}]
    if rule.paths is not None and rule.paths_span is not None:
        lose_paths(job, rule.paths_span)
    if rule.is_http and gep.denies:
        job.lose(codes.NOT_HTTP, "on ports that do not speak HTTP, Istio leaves paths and methods out here", rule.span)
    return plain


def lose_paths(job: Job, span: Span) -> None:
    """Report that the spelling of paths depends on the settings of the mesh."""
    if not job.assumes(Assumption.ISTIO_PATHS):
        job.lose(codes.PATHS, "Istio compares these paths as the mesh normalizes them", span, help=_PATHS_HELP)


# Callers


def _principals(caller: NamedCaller, gep: Gep, job: Job) -> Iterator[str]:
    domain = job.settings.trust_domain
    match caller:
        case Account(namespace, name):
            yield f"{domain}/ns/{namespace}/sa/{name}"
        case SpiffeIdentity(spiffe):
            yield from _identity(spiffe.removeprefix("spiffe://"), caller, gep, job)
        case WholeNamespace(namespace):
            yield from _namespace(namespace, caller, gep, job)


def _identity(principal: str, caller: SpiffeIdentity, gep: Gep, job: Job) -> Iterator[str]:
    segments = principal.split("/")
    own = job.settings.trust_domain
    if segments[0] == _EVERY_DOMAIN != own and len(segments) == 5:
        what = "it stays, and denies more" if gep.denies else "it is left out"
        message = f"in Istio {_EVERY_DOMAIN} would also mean {own}: {what}"
        job.lose(
            codes.TRUST_DOMAIN, message, caller.span, help=f"write spiffe://{own}/... if you mean that trust domain"
        )
        if not gep.denies:
            return
    yield principal


def _namespace(namespace: str, caller: WholeNamespace, gep: Gep, job: Job) -> Iterator[str]:
    domain = job.settings.trust_domain
    pattern = f"{domain}/ns/{namespace}/sa/*"
    if job.assumes(Assumption.ISTIO_IDENTITIES):
        yield pattern
        return
    way_out = "if Istio issues all identities of the mesh, add --assume istio-identities"
    if gep.denies:
        message = f"`{pattern}` also denies identities below those of service accounts"
        job.lose(codes.NAMESPACE_ACCOUNTS, message, caller.span, help=way_out)
        yield pattern
        return
    accounts = accounts_of(namespace, job)
    listed = ", ".join(accounts) if accounts else "no account is known"
    message = f"of namespace {namespace} only the known service accounts are kept: {listed}"
    job.lose(codes.NAMESPACE_ACCOUNTS, message, caller.span, help=way_out)
    for name in accounts:
        yield f"{domain}/ns/{namespace}/sa/{name}"


def accounts_of(namespace: str, job: Job) -> list[str]:
    """Return the service accounts of a namespace that a manifest declares or a workload uses."""
    declared = {account.name for account in job.world.service_accounts.values() if account.namespace == namespace}
    used = {
        workload.service_account
        for workload in job.world.workloads.values()
        if workload.namespace == namespace and workload.is_pod
    }
    return sorted(declared | used)
