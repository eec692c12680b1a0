"""Converts AuthConfigs to AuthPolicies of today: one for each route whose hosts all belong to one AuthConfig.

Authorino decides only requests that a proxy asks it about. So the AuthConfigs stay in force until no proxy asks about
their hosts.
"""

from __future__ import annotations

from collections.abc import Sequence

from eastgate.cluster.points import is_rule_of
from eastgate.cluster.routing.model import Routed
from eastgate.cluster.routing.rules import every_rule
from eastgate.cluster.targets import RouteNamed
from eastgate.convert import kuadrant_codes
from eastgate.convert.authconfig_versions import config_of
from eastgate.convert.gateway_conditions import are_mixed_up, arriving_hosts
from eastgate.convert.model import Item, Job, Manifest, metadata_of
from eastgate.convert.not_convertible import NotConvertible, first_error
from eastgate.convert.policy_writing import POLICY_API_VERSION, report_secrets, rules_of_policy
from eastgate.dialects.kuadrant import policies, proposal
from eastgate.dialects.kuadrant.authconfigs import Policy
from eastgate.dialects.kuadrant.authconfigs.linking import Links, link_hosts
from eastgate.dialects.kuadrant.hosts import ANY, is_inside

_KINDS = ("HTTPRoute", "GRPCRoute")


def to_policies(items: Sequence[Item], job: Job) -> None:
    """Write an AuthPolicy for each route whose hosts have one AuthConfig, and keep the AuthConfigs."""
    configs = [item.policy for item in job.items if isinstance(item.policy, Policy)]
    links = link_hosts(configs, job.settings)
    ways_of = _ways_of_routes(job)
    for item in items:
        config = item.policy
        assert isinstance(config, Policy)  # noqa: S101 - the registry has chosen it
        covered = {route: ways for route, ways in ways_of.items() if _is_for(config, _hosts(ways, job), links)}
        _lose_hosts(config, [host for ways in covered.values() for host in _hosts(ways, job)], links, job)
        try:
            _convert(item, config, covered, job)
        except NotConvertible as unconverted:
            message = f"{unconverted.message}: no AuthPolicy is written for {config.ref}"
            job.lose(unconverted.code, message, unconverted.span or config.name_span, help=unconverted.way_out)
        message = f"no manifest shows whether a proxy asks Authorino: {config.ref} stays in force"
        way_out = "remove it when no proxy asks Authorino about its hosts any more"
        job.keep(item.document, kuadrant_codes.NOT_ASKED_YET, message, config.name_span, help=way_out)


def _ways_of_routes(job: Job) -> dict[RouteNamed, list[Routed]]:
    """Return the rules of routes that requests reach through Gateways, once for each listener."""
    ways_of: dict[RouteNamed, list[Routed]] = {}
    for rule in every_rule(job.world):
        if rule.gateway is not None and rule.route.kind in _KINDS:
            ways_of.setdefault(rule.point.route, []).append(rule)
    return ways_of


def _hosts(ways: Sequence[Routed], job: Job) -> list[str]:
    return list(arriving_hosts(ways, job.world))


def _is_for(config: Policy, hosts: Sequence[str], links: Links) -> bool:
    """Return whether Authorino always finds this AuthConfig for requests to some hosts."""
    own = [host for host in links.of(config) if ":" not in host]
    others = [host for host, holder in links.by_host.items() if holder is not config]
    return bool(hosts) and all(
        any(_covers(linked, host) for linked in own) and not any(_may_be_found(other, host, own) for other in others)
        for host in hosts
    )


def _bare(host: str) -> str:
    return host.partition(":")[0].lower()


def _may_be_found(other: str, host: str, own: Sequence[str]) -> bool:
    """Return whether Authorino may find a linked host of another AuthConfig for requests to a host.

    A nearer linked host of this AuthConfig hides a wider host of the other one. It does not hide `*`, hosts with a
    port, or hosts in upper case: Authorino may find these for requests written in that form.
    """
    if other == ANY or other != _bare(other):
        return are_mixed_up(_bare(other), host)
    if is_inside(other, host):
        return True
    nearer = [each for each in own if each != other and is_inside(host, each) and _covers(other, each)]
    return _covers(other, host) and not nearer


def _covers(linked: str, host: str) -> bool:
    """Return whether Authorino finds a linked host for every request to a host, if no nearer host is linked."""
    return is_inside(host, linked) or linked == f"*.{host}"


def _lose_hosts(config: Policy, routed: Sequence[str], links: Links, job: Job) -> None:
    """Report the linked hosts of an AuthConfig that get no AuthPolicy."""
    spans = dict(zip(config.hosts, config.host_spans, strict=True))
    for host in links.of(config):
        if not any(is_inside(_bare(host), each) for each in routed):
            message = f"no route of this AuthConfig has all of {host}: no AuthPolicy is written for the rest"
            job.lose(kuadrant_codes.NO_ROUTE, message, spans[host])


def _convert(item: Item, config: Policy, covered: dict[RouteNamed, list[Routed]], job: Job) -> None:
    """Write the AuthPolicies of an AuthConfig, one for each route.

    Raises NotConvertible if a policy cannot express its scheme.
    """
    alone = {route: ways for route, ways in covered.items() if not _has_policy(ways, job)}
    for route in (route for route in covered if route not in alone):
        message = f"{route} or its Gateway has AuthPolicies already: none is written for {config.ref}"
        job.lose(kuadrant_codes.TWO_LEVELS, message, config.name_span)
    if not alone:
        return
    rules = rules_of_policy(config_of(item), config.scheme, [])
    several = len({route.namespace for route in alone}) < len(alone)
    manifests = [_manifest(item, route, rules, job, several=several) for route in alone]
    error = next((error for manifest in manifests if (error := first_error(manifest, job.settings))), None)
    if error is not None:
        raise NotConvertible(
            kuadrant_codes.NOT_EXPRESSIBLE, f"an AuthPolicy cannot express this: {error.code.title}", config.name_span
        )
    report_secrets(config.scheme, config.ref.namespace, config.name_span, job)
    for manifest in manifests:
        job.write(item.document, manifest)


def _has_policy(ways: Sequence[Routed], job: Job) -> bool:
    """Return whether some rules have an AuthPolicy of either kind.

    A second policy there would change the meaning of both.
    """
    return any(_governs(item.policy, rule) for item in job.items for rule in ways)


def _governs(policy: object, rule: Routed) -> bool:
    if isinstance(policy, policies.Policy):
        return is_rule_of(rule.point, policy.target)
    return isinstance(policy, proposal.Policy) and policy.target in (rule.point.gateway, rule.point.route)


def _manifest(item: Item, route: RouteNamed, rules: Manifest, job: Job, *, several: bool) -> Manifest:
    wanted = f"{item.document.name}-{route.name}" if several else item.document.name
    name = job.name(f"AuthPolicy.{policies.GROUP}", route.namespace, wanted)
    target: Manifest = {"group": "gateway.networking.k8s.io", "kind": route.kind, "name": route.name}
    return {
        "apiVersion": POLICY_API_VERSION,
        "kind": "AuthPolicy",
        "metadata": metadata_of(item.document, name, route.namespace),
        "spec": {"targetRef": target, **rules},
    }
