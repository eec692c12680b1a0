"""Manifests of a gateway with an MCP server and a web server behind it, and the agents that may use them."""

from __future__ import annotations

import json
from base64 import b64encode

AGENTS = """
apiVersion: v1
kind: Namespace
metadata: {name: prod}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gw, namespace: prod}
spec:
  gatewayClassName: eastgate
  listeners: [{name: http, port: 8080, protocol: HTTP}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: maths, namespace: prod}
spec:
  parentRefs: [{name: gw}]
  hostnames: [maths.example]
  rules:
  - backendRefs: [{group: agentic.prototype.x-k8s.io, kind: XBackend, name: maths}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: prod}
spec:
  parentRefs: [{name: gw}]
  hostnames: ["*.web.example"]
  rules:
  - matches: [{path: {type: PathPrefix, value: /api}}]
    filters:
    - type: URLRewrite
      urlRewrite: {hostname: inside.example, path: {type: ReplacePrefixMatch, replacePrefixMatch: /v2}}
    backendRefs: [{name: web, port: 80}]
  - matches: [{path: {type: PathPrefix, value: /old}}]
    filters: [{type: RequestRedirect, requestRedirect: {hostname: new.example, statusCode: 301}}]
  - matches: [{path: {type: PathPrefix, value: /mirror}}]
    filters: [{type: RequestMirror, requestMirror: {backendRef: {name: web, port: 80}}}]
    backendRefs: [{name: web, port: 80}]
---
apiVersion: agentic.prototype.x-k8s.io/v0alpha0
kind: XBackend
metadata: {name: maths, namespace: prod}
spec: {mcp: {serviceName: maths, port: 80, path: /mcp}}
---
apiVersion: v1
kind: Service
metadata: {name: maths, namespace: prod}
spec: {selector: {app: maths}, ports: [{port: 80, targetPort: 8000}]}
---
apiVersion: v1
kind: Pod
metadata: {name: maths, namespace: prod, labels: {app: maths}}
spec: {serviceAccountName: maths, containers: [{name: c, image: i, ports: [{containerPort: 8000}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: prod}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8001}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: prod, labels: {app: web}}
spec: {serviceAccountName: web, containers: [{name: c, image: i, ports: [{containerPort: 8001}]}]}
"""

POLICIES = """
apiVersion: agentic.prototype.x-k8s.io/v0alpha0
kind: XAccessPolicy
metadata: {name: at-gateway, namespace: prod}
spec:
  targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: gw}]
  rules:
  - name: agent
    source: {type: ServiceAccount, serviceAccount: {name: agent}}
    authorization: {type: InlineTools, tools: [add, remove]}
  - name: other
    source: {type: ServiceAccount, serviceAccount: {name: other}}
    authorization: {type: InlineTools, tools: [add]}
---
apiVersion: agentic.prototype.x-k8s.io/v0alpha0
kind: XAccessPolicy
metadata: {name: at-backend, namespace: prod}
spec:
  targetRefs: [{group: agentic.prototype.x-k8s.io, kind: XBackend, name: maths}]
  rules:
  - name: agent
    source: {type: ServiceAccount, serviceAccount: {name: agent}}
    authorization: {type: InlineTools, tools: [add, echo]}
"""

ASKING = """
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: asking, namespace: prod}
spec:
  parentRefs: [{name: gw}]
  hostnames: [asking.example]
  rules:
  - backendRefs: [{group: agentic.prototype.x-k8s.io, kind: XBackend, name: asking}]
---
apiVersion: agentic.prototype.x-k8s.io/v0alpha0
kind: XBackend
metadata: {name: asking, namespace: prod}
spec: {mcp: {serviceName: maths, port: 80, path: /mcp}}
---
apiVersion: agentic.prototype.x-k8s.io/v0alpha0
kind: XAccessPolicy
metadata: {name: asks-consent, namespace: prod}
spec:
  targetRefs: [{group: agentic.prototype.x-k8s.io, kind: XBackend, name: asking}]
  rules:
  - name: agent
    source: {type: ServiceAccount, serviceAccount: {name: agent}}
    authorization:
      type: ExternalAuth
      externalAuth: {protocol: HTTP, http: {}, backendRef: {name: consent, port: 80}}
---
apiVersion: v1
kind: Service
metadata: {name: consent, namespace: prod}
spec: {selector: {app: consent}, ports: [{port: 80, targetPort: 8002}]}
---
apiVersion: v1
kind: Pod
metadata: {name: consent, namespace: prod, labels: {app: consent}}
spec: {serviceAccountName: consent, containers: [{name: c, image: i, ports: [{containerPort: 8002}]}]}
"""


def secure(certificate: str, key: str) -> str:
    """Manifests of a gateway with HTTPS: one listener has a certificate of its own, and one has that of the mesh."""
    encoded = {"tls.crt": b64encode(certificate.encode()).decode(), "tls.key": b64encode(key.encode()).decode()}
    return f"""
apiVersion: v1
kind: Secret
metadata: {{name: own, namespace: prod}}
type: kubernetes.io/tls
data: {json.dumps(encoded)}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: secure, namespace: prod}}
spec:
  gatewayClassName: eastgate
  listeners:
  - {{name: own, port: 8443, protocol: HTTPS, hostname: own.example, tls: {{certificateRefs: [{{name: own}}]}}}}
  - {{name: mesh, port: 8443, protocol: HTTPS, hostname: mesh.example, tls: {{certificateRefs: [{{name: absent}}]}}}}
  - {{name: through, port: 8443, protocol: TLS, hostname: through.example, tls: {{mode: Passthrough}}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: TLSRoute
metadata: {{name: through, namespace: prod}}
spec:
  parentRefs: [{{name: secure, sectionName: through}}]
  hostnames: [through.example]
  rules: [{{backendRefs: [{{name: web, port: 80}}]}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: secure, namespace: prod}}
spec:
  parentRefs: [{{name: secure}}]
  rules:
  - matches: [{{path: {{type: PathPrefix, value: /web}}}}]
    backendRefs: [{{name: web, port: 80}}]
  - backendRefs: [{{group: agentic.prototype.x-k8s.io, kind: XBackend, name: maths}}]
"""
