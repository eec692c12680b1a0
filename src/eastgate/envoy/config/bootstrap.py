"""The configuration with which an Envoy starts. It gets everything else from the control plane."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from types import MappingProxyType

from eastgate.basics.records import dataclass
from eastgate.envoy.config.probes import AppProbe, probe_clusters, probe_listener
from eastgate.envoy.config.typed import Plain, filter_, typed

CONTROL_PLANE = "control-plane"
_MAX_CONNECTIONS = 50_000
# With it, the end of a connection between two listeners of a proxy becomes a reset, and the last bytes are lost: the
# answer to a request with `Connection: close`.
_RESETS = "envoy.reloadable_features.enable_send_rst_on_user_space_socket"
_MAX_PATTERN_SIZE = 20_000  # of RE2; patterns are checked earlier


def bootstrap(node: str, control_plane: str, token: str, admin: str | None = None) -> Plain:
    """Return the bootstrap of a proxy. Both addresses are paths of sockets that only Eastgate can open."""
    metadata = [{"key": "authorization", "value": f"Bearer {token}"}]
    cluster = {
        "type": "STATIC",
        "connect_timeout": "1s",
        "typed_extension_protocol_options": http2_options(),
        "load_assignment": {
            "cluster_name": CONTROL_PLANE,
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": {"pipe": {"path": control_plane}}}}]}],
        },
    }
    return assemble(node, cluster, metadata, admin)


def http2_options(**more: object) -> Plain:
    """Return the HTTP options of the cluster of the control plane."""
    options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
    keepalive = {"connection_keepalive": {"interval": "5s", "timeout": "5s"}}
    return {options: typed(options, explicit_http_config={"http2_protocol_options": keepalive}, **more)}


def assemble(
    node: str | None,
    cluster: Plain,
    metadata: list[Plain] | None = None,
    admin: str | None = None,
    *,
    patient: bool = False,
) -> Plain:
    """Return a bootstrap with the cluster of a control plane.

    `node`: None if the command line names it. `patient`: without a control plane, the proxy never starts to serve.
    """
    source: Plain = {"ads": {}, "resource_api_version": "V3", **({"initial_fetch_timeout": "0s"} if patient else {})}
    service: Plain = {
        "envoy_grpc": {
            "cluster_name": CONTROL_PLANE,
            "retry_policy": {"retry_back_off": {"base_interval": "0.05s", "max_interval": "2s"}},
        }
    }
    plain: Plain = {
        **({"node": {"id": node, "cluster": "eastgate"}} if node is not None else {}),
        "bootstrap_extensions": [
            filter_("inside", typed("envoy.extensions.bootstrap.internal_listener.v3.InternalListener"))
        ],
        "dynamic_resources": {
            "lds_config": source,
            "cds_config": source,
            "ads_config": {
                "api_type": "DELTA_GRPC",
                "transport_api_version": "V3",
                "set_node_on_first_message_only": True,
                "grpc_services": [service | ({"initial_metadata": metadata} if metadata else {})],
            },
        },
        "static_resources": {"clusters": [{"name": CONTROL_PLANE, **cluster}]},
        "layered_runtime": {
            "layers": [
                {
                    "name": "eastgate",
                    "static_layer": {
                        _RESETS: False,
                        "re2.max_program_size.error_level": _MAX_PATTERN_SIZE,
                        "re2.max_program_size.warn_level": _MAX_PATTERN_SIZE,
                    },
                }
            ]
        },
        "overload_manager": {
            "resource_monitors": [
                filter_(
                    "envoy.resource_monitors.global_downstream_max_connections",
                    typed(
                        "envoy.extensions.resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig",
                        max_active_downstream_connections=_MAX_CONNECTIONS,
                    ),
                )
            ]
        },
    }
    if admin is not None:
        plain["admin"] = {"address": {"pipe": {"path": admin, "mode": 0o600}}}
    return plain


# The bootstrap of an Envoy in a cluster, which authenticates to the control plane with a Kubernetes token. The token
# and CA files are replaced while the proxy runs. Envoy watches files that secrets refer to, so both are secrets, and
# two small files refer to them (`secret_sources`).


_HTTP = "envoy.extensions.filters.http"
_TOKEN, _TRUST = "token", "control-plane-trust"  # the names of secrets
TOKEN_SOURCE, TRUST_SOURCE = "token.json", "trust.json"


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """The control plane's address for proxies. `name` is the name in its certificate; by default, its host."""

    host: str = "eastgate.eastgate-system.svc"
    port: int = 15010
    name: str | None = None


@dataclass(frozen=True, slots=True)
class ProxyFiles:
    """The files of a proxy: the token and the CA, the folder with `secret_sources`, and the admin socket."""

    token: str = "/var/run/secrets/eastgate/token"  # noqa: S105 - a path
    ca: str = "/var/run/eastgate/ca/ca.crt"
    sources: str = "/etc/eastgate"
    admin: str | None = "/var/run/eastgate/admin/admin.sock"


def secret_sources(files: ProxyFiles) -> Mapping[str, Plain]:
    """Return the files, by name, that refer Envoy to its secrets."""
    ca = {"trusted_ca": {"filename": files.ca}, "watched_directory": {"path": str(PurePosixPath(files.ca).parent)}}
    token = {"secret": {"filename": files.token}}
    return MappingProxyType(
        {
            TOKEN_SOURCE: _secret_file(_TOKEN, "generic_secret", token),
            TRUST_SOURCE: _secret_file(_TRUST, "validation_context", ca),
        }
    )


def _secret_file(name: str, kind: str, secret: Plain) -> Plain:
    return {"resources": [typed("envoy.extensions.transport_sockets.tls.v3.Secret", name=name, **{kind: secret})]}


def pod_bootstrap(
    plane: ControlPlane,
    files: ProxyFiles,
    *,
    node: str | None = None,
    address: str | None = None,
    probes: Iterable[AppProbe] = (),
) -> Plain:
    """Return the bootstrap of a proxy in a pod. Until the control plane has answered, the proxy serves nothing.

    `node`: None if the command line names it. `address`: the pod's, for readiness probes of kubelets.
    """
    plain = assemble(node, _control_plane(plane, files), admin=files.admin, patient=True)
    if address is not None:
        of_pod = tuple(probes)
        plain["static_resources"]["listeners"] = [probe_listener(of_pod, address)]
        plain["static_resources"]["clusters"] += probe_clusters(of_pod, address)
    return plain


def _control_plane(plane: ControlPlane, files: ProxyFiles) -> Plain:
    name = plane.name or plane.host
    address = {"socket_address": {"address": plane.host, "port_value": plane.port}}
    names = [{"san_type": "DNS", "matcher": {"exact": name}}]
    context = typed(
        "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
        sni=name,
        common_tls_context={
            "tls_params": {"tls_minimum_protocol_version": "TLSv1_2"},
            "alpn_protocols": ["h2"],
            "combined_validation_context": {
                "default_validation_context": {"match_typed_subject_alt_names": names},
                "validation_context_sds_secret_config": _secret(_TRUST, f"{files.sources}/{TRUST_SOURCE}"),
            },
        },
    )
    return {
        "type": "STRICT_DNS",
        "dns_lookup_family": "V4_PREFERRED",
        "connect_timeout": "5s",
        "typed_extension_protocol_options": http2_options(http_filters=_token_filters(files)),
        "transport_socket": filter_("tls", context),
        "load_assignment": {
            "cluster_name": CONTROL_PLANE,
            "endpoints": [{"lb_endpoints": [{"endpoint": {"address": address}}]}],
        },
    }


def _token_filters(files: ProxyFiles) -> list[Plain]:
    """Return the filters that add the current token of the file to each new stream."""
    secret = _secret(_TOKEN, f"{files.sources}/{TOKEN_SOURCE}")
    bearer = typed(
        "envoy.extensions.http.injected_credentials.generic.v3.Generic",
        credential=secret,
        header="authorization",
        header_value_prefix="Bearer ",
    )
    injector = typed(
        f"{_HTTP}.credential_injector.v3.CredentialInjector",
        overwrite=True,
        credential=filter_("envoy.http.injected_credentials.generic", bearer),
    )
    codec = typed(f"{_HTTP}.upstream_codec.v3.UpstreamCodec")
    return [filter_("token", injector), filter_("codec", codec)]


def _secret(name: str, path: str) -> Plain:
    return {"name": name, "sds_config": {"path_config_source": {"path": path}, "resource_api_version": "V3"}}
