"""ExternalWorkloads out of Kubernetes data."""

from __future__ import annotations

from collections.abc import Iterator

from eastgate.cluster import codes
from eastgate.cluster.externals import EXTERNAL_GROUP
from eastgate.cluster.names import dns_subdomain_problem
from eastgate.cluster.read_containers import ports
from eastgate.cluster.shapes import ADDRESS, STRINGS, Fields, Of, each, record
from eastgate.ir.spiffe import spiffe_problem
from eastgate.reading.manifests.shapes.demands import Demand, Problem
from eastgate.reading.manifests.shapes.shape import Field, Record, Text

OLD_VERSION = f"{EXTERNAL_GROUP}/v1alpha1"


def _identity_problems(name: str) -> Iterator[Problem]:
    """Demand a DNS name or a SPIFFE ID, as in its certificate: no caller can prove another name."""
    problem = spiffe_problem(name) if name.startswith("spiffe:") else dns_subdomain_problem(name)
    if problem:
        message = f"`{name}` is not the name of a workload in the mesh: {problem}"
        yield Problem(codes.BAD_NAME, message, "write the name that is in its certificate: a DNS name, or spiffe://..")


def _external(tls: str) -> Record[None]:
    name: Of = Field(Text("a name", Demand(_identity_problems)), required=True, into="mesh_name")
    addresses = each({"ip": ADDRESS}, make=lambda ip=None: ip, together=lambda ips: tuple(filter(None, ips)))
    spec: Fields = {
        "workloadIPs": Field(addresses, into="ips"),
        tls: Field(record({"identity": name}), required=True),
        "ports": ports("port"),
    }
    metadata = record({"labels": STRINGS, "annotations": STRINGS})
    return record({"spec": Field(record(spec), implied=True), "metadata": metadata})


EXTERNAL, OLD_EXTERNAL = _external("meshTLS"), _external("meshTls")
"""Its first version spelled one field otherwise."""
