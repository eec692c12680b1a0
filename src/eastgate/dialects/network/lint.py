"""The hooks of lint for network policies; its checks of them are in the files `lint_*`."""

from __future__ import annotations

from eastgate.dialects.base import Policy
from eastgate.dialects.linting import Linting, Statements
from eastgate.dialects.network import lint_codes as codes
from eastgate.dialects.network.lint_ends import check_dns, check_host_network, check_one_side, check_tunnel
from eastgate.dialects.network.lint_peers import check_addresses, check_and_or, check_peers, check_ports
from eastgate.dialects.network.lint_rules import check_isolation, check_order, check_unreached
from eastgate.dialects.network.model import NetworkPolicy
from eastgate.ir import Layer


def _statements(policy: NetworkPolicy) -> Statements:
    return Statements(
        rules=tuple(rule.rule for rule in policy.all_rules),
        naming=(),
        targets=policy.targets,
        target_field="podSelector" if policy.isolates else "subject",
        allows=False,
        empty_list=None,
    )


def _blames(policy: Policy, _layer: Layer) -> bool:
    return isinstance(policy, NetworkPolicy)


LINTING: Linting[NetworkPolicy] = Linting(
    statements=_statements,
    blames=_blames,
    readings=(),
    fallback=None,
    checks=(
        check_isolation,
        check_peers,
        check_and_or,
        check_ports,
        check_addresses,
        check_unreached,
        check_order,
        check_one_side,
        check_dns,
        check_host_network,
        check_tunnel,
    ),
    codes=(codes,),
)
