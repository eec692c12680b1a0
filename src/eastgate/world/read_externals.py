"""ExternalWorkloads out of Kubernetes data."""

from __future__ import annotations

from eastgate.places import Span
from eastgate.policy.spiffe import spiffe_problem
from eastgate.world import codes
from eastgate.world.externals import EXTERNAL_GROUP, ExternalWorkload
from eastgate.world.fields import Section
from eastgate.world.names import dns_subdomain_problem
from eastgate.world.read_containers import read_port

__all__ = ["read_external"]


def read_external(root: Section, namespace: str, name: str, span: Span | None) -> ExternalWorkload:
    """An ExternalWorkload. Its first version spelled one field otherwise."""
    metadata, spec = root.section("metadata"), root.section("spec")
    old = root.text("apiVersion") == f"{EXTERNAL_GROUP}/v1alpha1"
    ips = [entry.address("ip") for entry in spec.sections("workloadIPs")]
    return ExternalWorkload(
        namespace=namespace,
        name=name,
        mesh_name=_mesh_name(spec, "meshTls" if old else "meshTLS"),
        labels=metadata.strings("labels"),
        annotations=metadata.strings("annotations"),
        ports=tuple(read_port(port, "port") for port in spec.sections("ports")),
        ips=tuple(ip for ip in ips if ip is not None),
        span=span,
    )


def _mesh_name(spec: Section, key: str) -> str:
    """The name in its certificate, as a DNS name or a SPIFFE ID: nobody could prove to be anything else."""
    if not spec.has(key):
        spec.missing(key)
    tls = spec.section(key)
    if not isinstance(spec.data.get(key), dict):
        return ""
    name = tls.required_text("identity")
    if isinstance(tls.data.get("identity"), str):
        problem = spiffe_problem(name) if name.startswith("spiffe:") else dns_subdomain_problem(name)
        if problem:
            message = f"`{name}` is not the name of a workload in the mesh: {problem}"
            way_out = "write the name that is in its certificate: a DNS name, or spiffe://.."
            tls.complain(codes.BAD_NAME, message, "identity", help=way_out)
    return name
