"""The fields of the cluster-wide policies, as in the CRDs of the experimental channel.

v1alpha1 is the version in v0.1.7: AdminNetworkPolicy, BaselineAdminNetworkPolicy. v1alpha2 has ClusterNetworkPolicy.
"""

from __future__ import annotations

from dataclasses import replace

from eastgate.basics.diagnostics import Code
from eastgate.basics.records import dataclass
from eastgate.cluster.resources import resource
from eastgate.dialects.network import codes, validation
from eastgate.dialects.network.shapes import PROTOCOL, SELECTOR
from eastgate.reading.manifests.shapes import Choice, Field, ListOf, Record, Text, Whole
from eastgate.reading.manifests.shapes.constraints import all_of
from eastgate.settings import Settings

Shape = Record[Settings]

_port_number = Whole(1, 65535, codes.PORT, "a port")
_INLINE_HELP = "write its content here: `namespaces` is the label selector itself"
_SAME_LABELS_HELP = "name the namespaces by their labels: this version has no field for it"
_namespaces: Shape = replace(
    SELECTOR,
    foreign={
        "namespaceSelector": (codes.OLD_PEER, _INLINE_HELP),
        "sameLabels": (codes.OLD_PEER, _SAME_LABELS_HELP),
        "notSameLabels": (codes.OLD_PEER, _SAME_LABELS_HELP),
    },
)


@dataclass(frozen=True, slots=True)
class _Version:
    """The differences between the kinds."""

    actions: Choice
    most: int
    ports_field: str
    named_port: str
    ports: Shape
    other_ports: dict[str, tuple[Code, str]]
    needs_namespaces: bool
    no_domains: bool = False


def _pods(version: _Version) -> Shape:
    """Return the shape of a selector of pods by the labels of their namespaces and their own labels."""
    write = "write namespaceSelector: {..}; {} is all namespaces"
    return Record(
        "pods",
        {
            "namespaceSelector": Field(
                SELECTOR,
                required=version.needs_namespaces,
                help=write,
                about="The labels of namespaces." + ("" if version.needs_namespaces else " If left out, all."),
            ),
            "podSelector": Field(
                SELECTOR,
                required=True,
                help="write podSelector: {..}; {} is all pods",
                about="The labels of pods. {} is all of them.",
            ),
        },
        foreign={"namespaces": (codes.OLD_PEER, "write namespaceSelector: {..} instead")},
    )


def _subject(version: _Version) -> Field[Settings]:
    shape: Shape = Record(
        "subject",
        {
            "namespaces": Field(_namespaces, about="All pods of the namespaces with these labels. {} is all of them."),
            "pods": Field(_pods(version), about="The pods with matching labels, in namespaces with matching labels."),
        },
        rules=(validation.exactly_one("a subject", empty="write namespaces: {} for all pods, or pods: {..} for some"),),
        misspelt={"namespaceSelector": "namespaces", "podSelector": "pods", "namespace": "namespaces", "pod": "pods"},
        advice={
            "podSelector": "write pods: {namespaceSelector: .., podSelector: ..}",
            "namespaceSelector": "write namespaces: {..}, or pods: {namespaceSelector: .., podSelector: ..}",
        },
    )
    return Field(shape, required=True, help="write subject: {namespaces: {..}}", about="The pods that it applies to.")


def _peer(version: _Version, *, egress: bool) -> Shape:
    fields: dict[str, Field[Settings]] = {
        "namespaces": Field(_namespaces, about="All pods of the namespaces with these labels. {} is all of them."),
        "pods": Field(_pods(version), about="The pods with matching labels, in namespaces with matching labels."),
    }
    outside: dict[str, Field[Settings]] = {
        "nodes": Field(SELECTOR, about="Nodes with these labels, and pods in their network. {} is all nodes."),
        "networks": Field(
            ListOf(
                Text("a network", validation.check_network),
                "a list of networks",
                all_of(
                    validation.filled("networks", 25, empty="write the networks, or remove the entry"),
                    validation.no_duplicates,
                ),
            ),
            about="Addresses, ANY of them, including addresses of pods.",
        ),
        "domainNames": Field(
            ListOf(
                Text("a domain name", validation.check_domain),
                "a list of domain names",
                all_of(
                    validation.filled("domainNames", 25, empty="write the names, or remove the entry"),
                    validation.no_duplicates,
                ),
            ),
            about="Addresses that ANY of these names resolved to. `*.example.com` is every subdomain of example.com.",
        ),
    }
    foreign: dict[str, tuple[Code, str]] = {}
    if not egress:
        way_out = "remove it: for addresses from outside write NetworkPolicies with ipBlock"
        foreign = dict.fromkeys(outside, (codes.OUTSIDE_AT_INGRESS, way_out))
        outside = {}
    elif version.no_domains:
        del outside["domainNames"]
        foreign = {"domainNames": (codes.NO_BASELINE_DOMAINS, "write networks: [..]")}
    return Record(
        "a peer",
        {**fields, **outside},
        rules=(validation.exactly_one("a peer", empty="for all pods write namespaces: {}"),),
        foreign=foreign,
        misspelt={
            "namespaceSelector": "namespaces",
            "podSelector": "pods",
            "namespace": "namespaces",
            "pod": "pods",
            "node": "nodes",
            "network": "networks",
            "domainName": "domainNames",
        },
        advice={
            "podSelector": "write pods: {namespaceSelector: .., podSelector: ..}",
            "namespaceSelector": "write namespaces: {..}, or pods: {namespaceSelector: .., podSelector: ..}",
            "ipBlock": "write networks: [..], in an egress rule",
        },
    )


def _rules(version: _Version, *, egress: bool) -> Field[Settings]:
    peers, ports = "to" if egress else "from", version.ports_field
    rules = (validation.check_domain_action, validation.check_named_port(ports, version.named_port)) if egress else ()
    rule: Shape = Record(
        "a rule",
        {
            "name": Field(Text("a name", validation.check_rule_name), about="The name for users."),
            "action": Field(
                version.actions,
                required=True,
                help=f"write action: {' or '.join(version.actions.options)}",
                about="The effect on connections that match. Pass leaves the tier, and the next one decides.",
            ),
            peers: Field(
                ListOf(
                    _peer(version, egress=egress),
                    "a list of peers",
                    validation.filled(
                        f"`{peers}`", version.most, empty=f"for all pods write {peers}: [{{namespaces: {{}}}}]"
                    ),
                ),
                required=True,
                help=f"write {peers}: [..]; for all pods {peers}: [{{namespaces: {{}}}}]",
                about="The other end, ANY of them.",
            ),
            ports: Field(
                ListOf(
                    version.ports,
                    f"a list of {ports}",
                    validation.filled(f"`{ports}`", version.most, empty="leave it out for all ports"),
                ),
                about="ANY of them. If left out, every port of every protocol.",
            ),
        },
        rules=rules,
        misspelt={"form": "from"} if not egress else {},
        foreign=version.other_ports,
    )
    listed = ListOf(rule, "a list of rules", validation.at_most("the list", version.most))
    about = "The FIRST rule that matches decides. If none matches, the next policy or tier decides."
    return Field(listed, about=("Outgoing connections. " if egress else "Incoming connections. ") + about)


def _policy(kind: str, version: _Version, more: dict[str, Field[Settings]], about: str) -> Shape:
    spec: Shape = Record(
        "spec",
        {
            **more,
            "subject": _subject(version),
            "ingress": _rules(version, egress=False),
            "egress": _rules(version, egress=True),
        },
        misspelt={"podSelector": "subject", "selector": "subject", "subjects": "subject"},
        advice={"podSelector": "write subject: {pods: {namespaceSelector: .., podSelector: ..}}"},
    )
    return resource(kind, spec, cluster_scoped=True, about=about)


_priority: Field[Settings] = Field(
    Whole(0, 1000, what="a priority"),
    required=True,
    help="write priority: <0 to 1000>, the lowest is first",
    about="The order in the tier: the lowest number is evaluated first.",
)

# v1alpha1

_PORT_ENTRY = "an entry of `ports`"
_v1alpha1_port: Shape = Record(
    "a port",
    {
        "portNumber": Field(
            Record(
                "portNumber",
                {
                    "protocol": Field(PROTOCOL, about="TCP where it is left out."),
                    "port": Field(_port_number, required=True, help="write port: <1 to 65535>", about="The port."),
                },
            ),
            about="One port.",
        ),
        "portRange": Field(
            Record(
                "portRange",
                {
                    "protocol": Field(PROTOCOL, about="TCP where it is left out."),
                    "start": Field(_port_number, required=True, help="write start: <1 to 65535>", about="The first."),
                    "end": Field(_port_number, required=True, help="write end: <1 to 65535>", about="The last."),
                },
                rules=(validation.check_v1alpha1_range,),
            ),
            about="Ports from the first to the last.",
        ),
        "namedPort": Field(Text("the name of a port"), about="The port of the destination that has this name."),
    },
    rules=(validation.exactly_one(_PORT_ENTRY, empty="leave `ports` out for all ports"),),
    foreign={
        **dict.fromkeys(("tcp", "udp", "sctp"), (codes.OTHER_FORM, "write portNumber: {protocol: .., port: ..}")),
        "destinationNamedPort": (codes.OTHER_FORM, "write namedPort: .."),
    },
    misspelt={"port": "portNumber", "number": "portNumber", "range": "portRange", "endPort": "portRange"},
    advice={
        "port": "write portNumber: {protocol: .., port: ..}",
        "protocol": "write portNumber: {protocol: .., port: ..}",
    },
)
_ACCEPT = {"ACCEPT": (codes.ACTION, "write Allow: this kind has no Accept")}
_admin = _Version(
    actions=Choice(("Allow", "Deny", "Pass"), codes.ACTION, reasons=_ACCEPT),
    most=100,
    ports_field="ports",
    named_port="namedPort",
    ports=_v1alpha1_port,
    other_ports={"protocols": (codes.OTHER_FORM, "write ports: [{portNumber: {protocol: .., port: ..}}]")},
    needs_namespaces=True,
)
_baseline = replace(
    _admin,
    actions=Choice(
        ("Allow", "Deny"),
        codes.ACTION,
        reasons={**_ACCEPT, "PASS": (codes.ACTION, "remove the rule: nothing comes after the baseline")},
    ),
    no_domains=True,
)
ADMIN_POLICY: Shape = _policy(
    "AdminNetworkPolicy",
    _admin,
    {"priority": _priority},
    "Rules that namespaces cannot override. They are evaluated before NetworkPolicies.",
)
BASELINE_POLICY: Shape = replace(
    _policy(
        "BaselineAdminNetworkPolicy",
        _baseline,
        {},
        "Rules for pods that no NetworkPolicy selects. A cluster has only one.",
    ),
    rules=(validation.check_baseline_name,),
)

# v1alpha2

_port: Shape = Record(
    "destinationPort",
    {
        "number": Field(_port_number, about="One port."),
        "range": Field(
            Record(
                "range",
                {
                    "start": Field(_port_number, required=True, help="write start: <1 to 65535>", about="The first."),
                    "end": Field(_port_number, required=True, help="write end: <1 to 65535>", about="The last."),
                },
                rules=(validation.check_range,),
            ),
            about="Ports from the first to the last. The last must be larger.",
        ),
    },
    rules=(validation.exactly_one("destinationPort", empty="write number: .., or range: {start: .., end: ..}"),),
)
_ALL_PORTS = "write destinationPort: {range: {start: 1, end: 65535}} for all ports"
_transport: Shape = Record(
    "a protocol", {"destinationPort": Field(_port, required=True, missing=codes.ONE_FIELD, help=_ALL_PORTS)}
)
_protocol: Shape = Record(
    "a protocol",
    {
        "tcp": Field(_transport, about="Ports of TCP."),
        "udp": Field(_transport, about="Ports of UDP."),
        "sctp": Field(_transport, about="Ports of SCTP."),
        "destinationNamedPort": Field(
            Text("the name of a port"), about="The port of the destination that has this name, of any protocol."
        ),
    },
    rules=(validation.exactly_one("an entry of `protocols`", empty="leave `protocols` out for all ports"),),
    foreign={
        **dict.fromkeys(("portNumber", "portRange"), (codes.OTHER_FORM, "write tcp: {destinationPort: {number: ..}}")),
        "namedPort": (codes.OTHER_FORM, "write destinationNamedPort: .."),
    },
    misspelt={"TCP": "tcp", "UDP": "udp", "SCTP": "sctp"},
)
_cluster = _Version(
    actions=Choice(
        ("Accept", "Deny", "Pass"),
        codes.ACTION,
        reasons={"ALLOW": (codes.ACTION, "write Accept: a ClusterNetworkPolicy has no Allow")},
    ),
    most=25,
    ports_field="protocols",
    named_port="destinationNamedPort",
    ports=_protocol,
    other_ports={"ports": (codes.OTHER_FORM, "write protocols: [{tcp: {destinationPort: {number: ..}}}]")},
    needs_namespaces=False,
)
CLUSTER_POLICY: Shape = _policy(
    "ClusterNetworkPolicy",
    _cluster,
    {
        "tier": Field(
            Choice(("Admin", "Baseline")),
            required=True,
            help="write tier: Admin, or tier: Baseline",
            about="Admin is evaluated before NetworkPolicies; Baseline applies to pods that no NetworkPolicy selects.",
        ),
        "priority": _priority,
    },
    "Rules that namespaces cannot override (Admin), or rules for pods without NetworkPolicies (Baseline).",
)
