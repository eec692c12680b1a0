"""Writes GEP-3779 in each of its three forms, which differ in what they can express."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eastgate.cluster import Selector
from eastgate.cluster.resources import MODE
from eastgate.convert import codes
from eastgate.convert.gep_reading import (
    Account,
    Gep,
    GepRule,
    NamedCaller,
    PodsTarget,
    SpiffeIdentity,
    TargetedService,
    WholeNamespace,
)
from eastgate.convert.model import Job, Manifest, metadata_of
from eastgate.convert.selectors import write_selector
from eastgate.dialects.gep3779 import GROUP
from eastgate.dialects.gep3779.settings import GepSettings
from eastgate.dialects.gep3779.settings import ServiceTarget as ServiceReading
from eastgate.reading.manifests import Plain

AUTHORIZATION_POLICY, X_POLICY = "AuthorizationPolicy", "XAuthorizationPolicy"
_Target = PodsTarget | TargetedService


def _manifest(version: str, kind: str, gep: Gep, job: Job, name: str, spec: Manifest) -> Manifest:
    chosen = job.name(kind, gep.namespace, name)
    return {
        "apiVersion": f"{GROUP}/{version}",
        "kind": kind,
        "metadata": metadata_of(
            gep.document, chosen, gep.written_namespace, {MODE: "audit"} if gep.policy.audit else None
        ),
        "spec": spec,
    }


def _one_each(gep: Gep, targets: Sequence[_Target], write: Callable[[_Target, str], None]) -> None:
    """Write one policy with the same rules for each target, because the form has one target for each policy."""
    for number, target in enumerate(targets, 1):
        write(target, gep.name if len(targets) == 1 else f"{gep.name}-{number}")


def _target_ref(target: _Target) -> Manifest:
    if isinstance(target, TargetedService):
        return {"group": "", "kind": "Service", "name": target.name}
    return {"group": "", "kind": "Pod", "selector": write_selector(target.selector)}


# 000: v1alpha2


def v1alpha2(gep: Gep, job: Job) -> None:
    """Write the Implementable draft, which can express everything that the other forms can."""
    spec: Manifest = {
        "targetRefs": [_target_ref(target) for target in gep.targets],
        "action": str(gep.policy.action),
    }
    if gep.level_written:
        spec["enforcementLevel"] = str(gep.policy.level).upper()
    spec["rules"] = [_rule(rule) for rule in gep.rules]
    job.write(gep.document, _manifest("v1alpha2", AUTHORIZATION_POLICY, gep, job, gep.name, spec))


def _rule(rule: GepRule) -> Manifest:
    plain: Manifest = {}
    if rule.callers is not None:  # {} matches no caller, so it is kept
        source: Manifest = {}
        identities: list[Plain] = [caller.spiffe for caller in rule.callers if isinstance(caller, SpiffeIdentity)]
        accounts: list[Plain] = [_account(caller) for caller in rule.callers if not isinstance(caller, SpiffeIdentity)]
        if identities:
            source["identities"] = identities
        if accounts:
            source["serviceAccounts"] = accounts
        plain["authorizationSource"] = source
    if rule.ports is not None:
        plain["networkAttributes"] = {"ports": list(rule.ports)}
    application: Manifest = {}
    if rule.paths is not None:
        application["paths"] = list(rule.paths)
    if rule.methods is not None:
        application["methods"] = list(rule.methods)
    if application:
        plain["applicationAttributes"] = application
    return plain


def _account(caller: Account | WholeNamespace) -> str:
    return f"{caller.namespace}/{caller.name if isinstance(caller, Account) else '*'}"


# 001: v1alpha1


def v1alpha1(gep: Gep, job: Job) -> None:
    """Write the Provisional draft, which has one target, and no levels."""
    if _is_above_l4(gep, job):
        return

    def write(target: _Target, name: str) -> None:
        spec: Manifest = {
            "targetRefs": _target_ref(target),
            "action": str(gep.policy.action),
            "tcpRules": [_old_rule(rule) for rule in gep.rules],
        }
        job.write(gep.document, _manifest("v1alpha1", AUTHORIZATION_POLICY, gep, job, name, spec))

    _one_each(gep, gep.targets, write)


def _old_rule(rule: GepRule) -> Manifest:
    """Write a rule. This form has no `sources: []`; a rule without ports matches nothing either."""
    plain: Manifest = {}
    if rule.callers:
        groups: dict[str, list[Plain]] = {"identities": [], "serviceAccounts": [], "namespaces": []}
        for caller in rule.callers:
            match caller:
                case SpiffeIdentity(spiffe):
                    groups["identities"].append(spiffe)
                case Account():
                    groups["serviceAccounts"].append(_account(caller))
                case WholeNamespace(namespace):
                    groups["namespaces"].append(namespace)
        plain["sources"] = [{name: entries} for name, entries in groups.items() if entries]
    if rule.never:
        plain["attributes"] = [{"ports": []}]
    elif rule.ports is not None:
        plain["attributes"] = [{"ports": list(rule.ports)}]
    return plain


# Upstream: the X kind


def x_v1alpha1(gep: Gep, job: Job) -> None:
    """Write the upstream form, which has no DENY, no L7 and no Service."""
    if _is_above_l4(gep, job):
        return
    if gep.denies:
        message = f"{X_POLICY} has no DENY: {gep.policy.ref} is not converted"
        job.keep(gep.document, codes.DENY, message, gep.span("action"), help="keep it as it is beside the others")
        return
    targets = [resolved(target, gep, job) for target in gep.targets]
    chosen = [target for target in targets if target is not None]
    if len(chosen) < len(targets):
        return

    def write(target: _Target, name: str) -> None:
        spec: Manifest = {
            "targetRefs": [_target_ref(target)],
            "action": "ALLOW",
            "enforcementLevel": "Network",
            "rules": [_x_rule(rule) for rule in gep.rules],
        }
        job.write(gep.document, _manifest("v1alpha1", X_POLICY, gep, job, name, spec))

    _one_each(gep, chosen, write)


def _x_rule(rule: GepRule) -> Manifest:
    plain: Manifest = {}
    if rule.callers is not None:
        plain["sources"] = [_x_source(caller) for caller in rule.callers]
    if rule.ports is not None:
        plain["networkAttributes"] = {"ports": list(rule.ports)}
    return plain


def _x_source(caller: NamedCaller) -> Manifest:
    if isinstance(caller, SpiffeIdentity):
        return {"type": "SPIFFE", "spiffe": caller.spiffe}
    name = caller.name if isinstance(caller, Account) else "*"
    return {"type": "ServiceAccount", "serviceAccount": {"namespace": caller.namespace, "name": name}}


# Features that only some forms have


def _is_above_l4(gep: Gep, job: Job) -> bool:
    if not gep.is_application:
        return False
    message = f"the target has no APPLICATION level: {gep.policy.ref} is not converted"
    span = gep.span("enforcementLevel")
    job.keep(gep.document, codes.LEVEL, message, span, help="convert it to authorizationpolicy-v1alpha2, which has one")
    return True


def resolved(target: _Target, gep: Gep, job: Job) -> PodsTarget | None:
    """Return the pods that a Service selects, for forms that cannot target a Service; None if they are not known."""
    if isinstance(target, PodsTarget):
        return target
    if job.settings.section(GepSettings).service_target is ServiceReading.TRAFFIC:
        message = f"the target cannot say “traffic to this Service only”: {gep.policy.ref} is not converted"
        job.keep(gep.document, codes.SERVICE_UNKNOWN, message, target.span)
        return None
    service = job.world.services.get(f"{gep.namespace}/{target.name}")
    if service is None or not service.selects_pods:
        unknown = f"it is not known which pods Service {gep.namespace}/{target.name} selects"
        message = f"{unknown}: {gep.policy.ref} is not converted"
        way_out = "give the manifest of the Service with -f" if service is None else "target Pods with a selector"
        job.keep(gep.document, codes.SERVICE_UNKNOWN, message, target.span, help=way_out)
        return None
    labels = ", ".join(f"{key}={value}" for key, value in sorted(service.selector.items()))
    message = f"Service {gep.namespace}/{target.name} was replaced by its labels: {labels}"
    job.lose(codes.SERVICE_SELECTOR, message, target.span, help="convert again when the Service changes")
    return PodsTarget(Selector.of(service.selector), target.span)
