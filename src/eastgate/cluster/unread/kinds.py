"""The catalogue of unread kinds that decide or change which connections are allowed.

An object of a kind that is neither in the catalogue nor read by a dialect counts as one that decides nothing. Admission
policies (Gatekeeper's constraints, Kyverno's ClusterPolicy), quotas, routes and certificates are not in the catalogue
on purpose. Names are those of the projects' CustomResourceDefinitions.
"""

from __future__ import annotations

from typing import Final

from eastgate.basics.regexes import regex
from eastgate.cluster.unread.model import EnforcementPlane, TargetField, UnreadEffect, UnreadKind

DENY, CHANGE, NONE = UnreadEffect.DENY, UnreadEffect.CHANGE, UnreadEffect.NONE
NETWORK, MESH, GATEWAY = EnforcementPlane.NETWORK, EnforcementPlane.MESH, EnforcementPlane.GATEWAY


def _of(
    group: str, effect: UnreadEffect, plane: EnforcementPlane, field: str, *kinds: str, note: str = ""
) -> tuple[UnreadKind, ...]:
    return tuple(UnreadKind(group, kind, effect, plane, TargetField(field), note) for kind in kinds)


def _beside_auth(group: str, note: str, *kinds: str) -> tuple[UnreadKind, ...]:
    """Return kinds of Kuadrant that decide nothing."""
    return _of(group, NONE, GATEWAY, "targetRefs", *kinds, note=note)


KINDS: Final[tuple[UnreadKind, ...]] = (
    # Kubernetes
    *_of("extensions", DENY, NETWORK, "podSelector", "NetworkPolicy"),
    *_of("k8s.cni.cncf.io", DENY, NETWORK, "podSelector", "MultiNetworkPolicy"),
    # Istio
    *_of("networking.istio.io", CHANGE, MESH, "workloadSelector", "EnvoyFilter", "Sidecar"),
    *_of("extensions.istio.io", CHANGE, MESH, "selector", "TrafficExtension", "WasmPlugin"),
    # OpenShift Service Mesh 2: its operator lets only members of the mesh connect to members, by NetworkPolicies that
    # it writes. It does not decide about the proxies of pods: an annotation of the pod asks for one.
    *_of("maistra.io", DENY, NETWORK, "members", "ServiceMeshMember", "ServiceMeshMemberRoll"),
    *_of("maistra.io", CHANGE, MESH, "cluster", "ServiceMeshControlPlane", note="an installation of Istio"),
    *_of("gateway.kyma-project.io", DENY, MESH, "cluster", "APIRule"),
    # Cilium
    *_of("cilium.io", DENY, NETWORK, "endpointSelector", "CiliumNetworkPolicy", "CiliumClusterwideNetworkPolicy"),
    *_of("cilium.io", CHANGE, NETWORK, "namespace", "CiliumEnvoyConfig", "CiliumLocalRedirectPolicy"),
    *_of("cilium.io", CHANGE, NETWORK, "cluster", "CiliumClusterwideEnvoyConfig"),
    # Calico, in either of its two APIs. A tier by itself passes or denies the traffic that its policies select; staged
    # policies are only recorded.
    *(
        kind
        for group in ("crd.projectcalico.org", "projectcalico.org")
        for kind in (
            *_of(group, DENY, NETWORK, "calico", "GlobalNetworkPolicy", "NetworkPolicy"),
            *_of(group, DENY, NETWORK, "cluster", "Tier"),
            *_of(group, NONE, NETWORK, "cluster", "StagedGlobalNetworkPolicy"),
            *_of(group, NONE, NETWORK, "namespace", "StagedKubernetesNetworkPolicy", "StagedNetworkPolicy"),
        )
    ),
    # Other networks
    *_of("crd.antrea.io", DENY, NETWORK, "namespace", "NetworkPolicy"),
    *_of("crd.antrea.io", DENY, NETWORK, "cluster", "ClusterNetworkPolicy"),
    *_of("crd.antrea.io", CHANGE, NETWORK, "cluster", "TrafficControl"),
    *_of("k8s.ovn.org", DENY, NETWORK, "namespace", "EgressFirewall"),
    *_of("k8s.ovn.org", DENY, NETWORK, "user-network", "ClusterUserDefinedNetwork", "UserDefinedNetwork"),
    *_of("network.openshift.io", DENY, NETWORK, "namespace", "EgressNetworkPolicy"),
    *_of("kubeovn.io", DENY, NETWORK, "cluster", "SecurityGroup"),
    *_of("networking.gke.io", DENY, NETWORK, "podSelector", "FQDNNetworkPolicy"),
    *_of("networking.k8s.aws", DENY, NETWORK, "podSelector", "ApplicationNetworkPolicy"),
    *_of("networking.k8s.aws", DENY, NETWORK, "subject", "ClusterNetworkPolicy"),
    *_of("vpcresources.k8s.aws", DENY, NETWORK, "namespace", "SecurityGroupPolicy"),
    *_of("neuvector.com", DENY, NETWORK, "namespace", "NvSecurityRule"),
    *_of("neuvector.com", DENY, NETWORK, "cluster", "NvClusterSecurityRule"),
    # Other meshes
    *_of("consul.hashicorp.com", DENY, MESH, "cluster", "ServiceIntentions"),
    *_of("kuma.io", DENY, MESH, "cluster", "MeshTrafficPermission", "TrafficPermission"),
    *_of("kuma.io", CHANGE, MESH, "cluster", "MeshProxyPatch", "MeshTLS", "ProxyTemplate"),
    *_of("access.smi-spec.io", DENY, MESH, "cluster", "TrafficTarget"),
    *_of("policy.openservicemesh.io", DENY, MESH, "namespace", "Egress", "IngressBackend"),
    *_of("k8s.otterize.com", DENY, MESH, "cluster", "ClientIntents"),
    *_of("networking.gke.io", DENY, MESH, "namespace", "GCPAuthzPolicy"),
    *_of("eventing.knative.dev", DENY, MESH, "namespace", "EventPolicy"),
    # Authorizers of proxies: the configuration of a proxy names its authorizer
    *_of("envoy.kyverno.io", DENY, MESH, "unknown", "AuthorizationPolicy"),
    # Gateways
    *_of("extensions.kuadrant.io", CHANGE, GATEWAY, "targetRefs", "OIDCPolicy", note="it creates AuthPolicies"),
    *_of("extensions.kuadrant.io", DENY, GATEWAY, "targetRefs", "ThreatPolicy"),
    *_beside_auth("kuadrant.io", "limits of rates", "RateLimitPolicy", "TokenRateLimitPolicy"),
    *_beside_auth("extensions.kuadrant.io", "limits of rates by plan", "PlanPolicy"),
    *_beside_auth("extensions.kuadrant.io", "labels of metrics", "TelemetryPolicy"),
    *_beside_auth("kuadrant.io", "certificates of listeners", "TLSPolicy"),
    *_beside_auth("kuadrant.io", "DNS records", "DNSPolicy", "DNSRecord", "DNSHealthCheckProbe", "ManagedZone"),
    *_beside_auth("kuadrant.io", "an installation of Kuadrant", "Kuadrant"),
    *_beside_auth("operator.authorino.kuadrant.io", "an installation of Authorino", "Authorino"),
    *_beside_auth("limitador.kuadrant.io", "an installation of Limitador", "Limitador"),
    *_beside_auth("devportal.kuadrant.io", "the developer portal", "APIKey", "APIKeyApproval", "APIKeyRequest"),
    *_beside_auth("devportal.kuadrant.io", "the developer portal", "APIProduct"),
    *_of("application-networking.k8s.aws", DENY, GATEWAY, "targetRefs", "IAMAuthPolicy"),
    *_of("gateway.envoyproxy.io", DENY, GATEWAY, "targetRefs", "SecurityPolicy"),
    *_of("gateway.envoyproxy.io", CHANGE, GATEWAY, "targetRefs", "ClientTrafficPolicy", "EnvoyExtensionPolicy"),
    *_of("gateway.envoyproxy.io", CHANGE, GATEWAY, "targetRefs", "EnvoyPatchPolicy"),
    *_of("aigateway.envoyproxy.io", DENY, GATEWAY, "unknown", "MCPRoute"),
    *_of("gateway.kgateway.dev", DENY, GATEWAY, "targetRefs", "AgentgatewayPolicy", "RoutePolicy", "TrafficPolicy"),
    *_of("agentgateway.dev", DENY, GATEWAY, "targetRefs", "AgentgatewayPolicy"),
    *_of("enterprise.gloo.solo.io", DENY, GATEWAY, "unknown", "AuthConfig"),
    *_of("gateway.solo.io", CHANGE, GATEWAY, "targetRefs", "RouteOption", "VirtualHostOption"),
    *_of("k8s.nginx.org", DENY, GATEWAY, "unknown", "Policy"),
    *_of("gateway.nginx.org", DENY, GATEWAY, "unknown", "AuthenticationFilter"),
    *_of("gateway.nginx.org", CHANGE, GATEWAY, "unknown", "SnippetsFilter"),
    *_of("projectcontour.io", DENY, GATEWAY, "unknown", "ExtensionService", "HTTPProxy"),
    *_of("configuration.konghq.com", DENY, GATEWAY, "unknown", "KongClusterPlugin", "KongPlugin", "KongPluginBinding"),
    *_of("traefik.io", DENY, GATEWAY, "unknown", "Middleware", "MiddlewareTCP"),
    *_of("traefik.containo.us", DENY, GATEWAY, "unknown", "Middleware", "MiddlewareTCP"),
    *_of("hub.traefik.io", DENY, GATEWAY, "unknown", "AccessControlPolicy"),
    *_of("getambassador.io", DENY, GATEWAY, "unknown", "AuthService", "Filter", "FilterPolicy"),
    *_of("apisix.apache.org", DENY, GATEWAY, "unknown", "ApisixGlobalRule", "ApisixPluginConfig", "ApisixRoute"),
)

_BY_NAME = {(entry.group, entry.kind): entry for entry in KINDS}
_POLICY_LIKE_NAME = regex(r"(?i)(network|authorization|securitygroup)polic(y|ies)")


def unread_kind(group: str, kind: str) -> UnreadKind | None:
    """Return the entry of a kind, or None."""
    return _BY_NAME.get((group, kind))


def is_unread_name(kind: str) -> bool:
    """Return whether a kind of this name is not read, in any group."""
    return any(kind == entry.kind for entry in KINDS) or _POLICY_LIKE_NAME.search(kind) is not None


def resembling(group: str, kind: str) -> UnreadKind | None:
    """Return an entry for an unknown kind whose name suggests that it decides about connections, or None.

    The kind may belong to an unlisted system, or its name or group may be misspelt.
    """
    is_listed = any(kind.lower() == entry.kind.lower() for entry in KINDS if entry.group == group)
    if is_listed or _POLICY_LIKE_NAME.search(kind):
        return UnreadKind(group, kind, DENY, MESH, TargetField.UNKNOWN)
    return None
