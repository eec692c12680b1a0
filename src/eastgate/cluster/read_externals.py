"""ExternalWorkloads out of Kubernetes data."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.basics.diagnostics.spans import Span
from eastgate.cluster import codes
from eastgate.cluster.externals import EXTERNAL_GROUP, ExternalWorkload
from eastgate.cluster.fields import Data, entries, mapping, strings, text
from eastgate.cluster.names import dns_subdomain_problem
from eastgate.cluster.read_containers import ports, read_port
from eastgate.cluster.read_pods import read_addresses
from eastgate.cluster.shapes import ADDRESS, STRINGS, TEXT, each, record
from eastgate.ir.spiffe import spiffe_problem
from eastgate.reading.manifests.shapes.demands import Demand, Problem
from eastgate.reading.manifests.shapes.shape import Field, Record, Text

OLD_VERSION = f"{EXTERNAL_GROUP}/v1alpha1"


def _identity_problems(name: str) -> Iterator[Problem]:
    """Demand a DNS name or a SPIFFE ID, as in its certificate: nobody could prove to be anything else."""
    problem = spiffe_problem(name) if name.startswith("spiffe:") else dns_subdomain_problem(name)
    if problem:
        message = f"`{name}` is not the name of a workload in the mesh: {problem}"
        yield Problem(codes.BAD_NAME, message, "write the name that is in its certificate: a DNS name, or spiffe://..")


def _external(tls: str) -> Record[None]:
    identity = record({"identity": Field(Text("a name", Demand(_identity_problems)), required=True)})
    spec = record({"workloadIPs": each({"ip": ADDRESS}), tls: Field(identity, required=True), "ports": ports("port")})
    return record(
        {
            "apiVersion": TEXT,
            "spec": Field(spec, implied=True),
            "metadata": record({"labels": STRINGS, "annotations": STRINGS}),
        }
    )


EXTERNAL, OLD_EXTERNAL = _external("meshTLS"), _external("meshTls")
"""Its first version spelled one field otherwise."""


def read_external(root: Data, namespace: str, name: str, span: Span | None) -> ExternalWorkload:
    """Return an ExternalWorkload."""
    metadata, spec = mapping(root, "metadata"), mapping(root, "spec")
    tls = mapping(spec, "meshTls" if root.get("apiVersion") == OLD_VERSION else "meshTLS")
    return ExternalWorkload(
        namespace=namespace,
        name=name,
        mesh_name=text(tls, "identity") or "",
        labels=strings(metadata, "labels"),
        annotations=strings(metadata, "annotations"),
        ports=tuple(read_port(port, "port") for port in entries(spec, "ports")),
        ips=read_addresses(text(entry, "ip") for entry in entries(spec, "workloadIPs")),
        span=span,
    )
