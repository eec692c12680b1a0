"""The fields of a NetworkPolicy in `networking.k8s.io/v1`. The other kinds are in `cluster_shapes.py`."""

from __future__ import annotations

from dataclasses import replace

from eastgate.cluster.resources import label_selector, resource
from eastgate.dialects.network import codes, validation
from eastgate.reading.manifests.shapes import Anything, Choice, Field, ListOf, Record, Text, Whole
from eastgate.settings import Settings

Shape = Record[Settings]

TRANSPORTS = ("TCP", "UDP", "SCTP")
_OTHER_PROTOCOLS = {
    "ICMP": (codes.PROTOCOL, "remove it: the effect on ICMP is not defined"),
    "HTTP": (codes.PROTOCOL, "write TCP, and the port"),
}
PROTOCOL = Choice(TRANSPORTS, codes.PROTOCOL, reasons=_OTHER_PROTOCOLS)
SELECTOR: Shape = replace(
    label_selector(), misspelt={"matchLabel": "matchLabels", "matchExpression": "matchExpressions"}
)

_block: Shape = Record(
    "ipBlock",
    {
        "cidr": Field(
            Text("a CIDR", validation.check_cidr),
            required=True,
            help="write cidr: 10.0.0.0/8",
            about="The addresses, including addresses of pods.",
        ),
        "except": Field(
            ListOf(Text("a CIDR", validation.check_cidr), "a list of CIDRs"),
            about="Exceptions from the block. Another entry may still match them.",
        ),
    },
    rules=(validation.check_block,),
    misspelt={"excepts": "except", "cidrs": "cidr"},
)
_peer: Shape = Record(
    "a peer",
    {
        "podSelector": Field(
            SELECTOR,
            about="The labels of pods: in the policy's own namespace, or in those that a namespaceSelector beside it "
            "selects. {} is all of them.",
        ),
        "namespaceSelector": Field(SELECTOR, about="The labels of namespaces. {} is all of them."),
        "ipBlock": Field(_block, about="A block of addresses. No other field is allowed beside it."),
    },
    rules=(validation.check_peer,),
    advice={"namespace": "write namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: ..}}"},
    otherwise="a peer has podSelector, namespaceSelector, or both; or ipBlock",
)
_port: Shape = Record(
    "a port",
    {
        "protocol": Field(PROTOCOL, about="TCP where it is left out."),
        "port": Field(Anything(), about="A number, or the name of a port of the destination. If left out, any port."),
        "endPort": Field(Whole(1, 65535, codes.END_PORT, "a port"), about="The last port of a range from `port`."),
    },
    rules=(validation.check_port,),
    advice={"targetPort": "write port: the policy sees the port of the pod, not that of a Service"},
    misspelt={"ports": "port", "targetPort": "port"},
)


def _rule(peers: str, other: str) -> Shape:
    misspelt = {"form": "from"} if peers == "from" else {}
    return Record(
        "a rule",
        {
            peers: Field(ListOf(_peer, "a list of peers"), about="The peers, ANY of them. If left out, any peer."),
            "ports": Field(ListOf(_port, "a list of ports"), about="ANY of them. If left out, every port."),
        },
        misspelt={**misspelt, other: peers, "port": "ports"},
        advice={
            **{name: f"write {peers}: [{{{name}: ..}}]" for name in _peer.fields},
            other: f"write {peers}: here: `{other}` is for the other direction",
        },
    )


_types = Choice(("Ingress", "Egress"), codes.POLICY_TYPES)
_spec: Shape = Record(
    "spec",
    {
        "podSelector": Field(SELECTOR, about="The pods of the namespace that it applies to. {} or left out: all."),
        "policyTypes": Field(
            ListOf(_types, "a list of policyTypes", validation.check_policy_types),
            about="Directions for which it isolates its pods. If left out: Ingress, and Egress if it has egress rules.",
        ),
        "ingress": Field(
            ListOf(_rule("from", "to"), "a list of rules"), about="Allowed incoming connections. [] allows none."
        ),
        "egress": Field(
            ListOf(_rule("to", "from"), "a list of rules"), about="Allowed outgoing connections. [] allows none."
        ),
    },
    misspelt={
        "selector": "podSelector",
        "policyType": "policyTypes",
        "from": "ingress",
        "to": "egress",
        "podSelectors": "podSelector",
    },
    advice={
        "from": "write ingress: [{from: ..}]",
        "to": "write egress: [{to: ..}]",
        "namespaceSelector": "remove it: a NetworkPolicy selects pods of its own namespace",
    },
)
_resource: Shape = resource(
    "NetworkPolicy", _spec, about="Allowed connections into and out of the pods of a namespace."
)
NETWORK_POLICY: Shape = replace(
    _resource, fields={**_resource.fields, "spec": replace(_resource.fields["spec"], required=False)}
)
