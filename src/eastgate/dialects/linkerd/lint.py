"""The hooks of lint for Linkerd's resources; its checks of them are in the files `lint_*`."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.cluster import Target
from eastgate.dialects.base import Policy
from eastgate.dialects.linkerd import lint_codes as codes
from eastgate.dialects.linkerd.lint_proxies import check_annotations, check_probes, check_proxies
from eastgate.dialects.linkerd.lint_routes import check_dropped_routes
from eastgate.dialects.linkerd.lint_servers import (
    check_combined_authentications,
    check_namespace_policies,
    check_overlapping_servers,
    check_policy_targets,
    check_references,
    check_server_authorizations,
    check_server_ports,
)
from eastgate.dialects.linkerd.lint_spellings import check_spellings
from eastgate.dialects.linkerd.model import (
    AuthorizationPolicy,
    LinkerdResource,
    MeshTLSAuthentication,
    Server,
    ServerAuthorization,
)
from eastgate.dialects.linting import Fallback, Linting, Naming, Statements, naming_of
from eastgate.ir import Layer, PolicyRef


def _statements(resource: LinkerdResource) -> Statements:
    rules = (resource.rule,) if isinstance(resource, ServerAuthorization) else ()
    targets, field = _targets(resource)
    return Statements(
        rules=rules,
        naming=(*naming_of(rules), *_naming(resource)),
        targets=targets,
        target_field=field,
        allows=False,
        empty_list=None,
    )


def _naming(resource: LinkerdResource) -> Iterator[Naming]:
    match resource:
        case MeshTLSAuthentication():
            yield Naming(resource.who, resource.who_span)
        case AuthorizationPolicy():
            for requirement in resource.requirements:
                if not isinstance(requirement.when, PolicyRef):
                    yield Naming(requirement.when, requirement.span)
        case _:
            pass  # the others name callers in rules, or not at all


def _targets(resource: LinkerdResource) -> tuple[tuple[Target, ...], str]:
    """Return the targets that are workloads, and their field. `check_policy_targets` is for Servers and routes."""
    match resource:
        case Server():
            return resource.targets, "externalWorkloadSelector" if resource.external else "podSelector"
        case AuthorizationPolicy() if resource.target.is_workload:
            return resource.targets, "targetRef"
        case _:
            return (), "targetRef"


def _blames(policy: Policy, _layer: Layer) -> bool:
    """Return whether it is a Server: those close; all policies of a namespace are attached to each of its pods."""
    return policy.ref.kind == "Server"


LINTING: Linting[LinkerdResource] = Linting(
    statements=_statements,
    blames=_blames,
    readings=(),
    fallback=Fallback(
        codes.ACCESS_POLICY_WINS,
        lambda fallbacks, policy: f"{fallbacks} of the Server already lets in everybody whom {policy} names",
        "write accessPolicy: deny on the Server, or remove the policy",
    ),
    checks=(
        check_policy_targets,
        check_server_authorizations,
        check_server_ports,
        check_combined_authentications,
        check_overlapping_servers,
        check_namespace_policies,
        check_references,
        check_probes,
        check_annotations,
        check_proxies,
        check_dropped_routes,
        check_spellings,
    ),
    codes=(codes,),
)
