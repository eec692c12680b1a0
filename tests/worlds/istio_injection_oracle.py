"""The pods that have sidecars, by Istio's injection labels, and the decision for pods without labels.

Like the oracle of sidecars, it shares no code with the product. For pods without information, either all have a
sidecar, or none. A call is allowed if it is allowed in both cases.
"""

from __future__ import annotations

from dataclasses import replace

from tests.worlds.istio_oracle import OK, Call, Manifest, MeshConfig, Sidecars

INJECTION, INJECT = "istio-injection", "sidecar.istio.io/inject"


class Injection:
    """A mesh with sidecars by labels."""

    def __init__(self, manifests: list[Manifest], config: MeshConfig) -> None:
        self.sidecars = Sidecars(manifests, config)
        self.domain = config.trust_domains[0]
        of_kind = {kind: [m for m in manifests if m["kind"] == kind] for kind in ("Namespace", "Pod")}
        self.namespaces = {m["metadata"]["name"]: m["metadata"].get("labels", {}) for m in of_kind["Namespace"]}
        enabled = any(labels.get(INJECTION) == "enabled" for labels in self.namespaces.values())
        self.has_labels = enabled or any(asked(pod) == "true" for pod in of_kind["Pod"])

    def allows(self, caller: Manifest, pod: Manifest, call: Call) -> bool:
        """Return whether a call is allowed in both cases."""
        return all(self._allows(caller, pod, call, unknown=unknown) for unknown in (True, False))

    def _allows(self, caller: Manifest, pod: Manifest, call: Call, *, unknown: bool) -> bool:
        if not self._is_injected(pod, unknown):
            return True  # without a proxy everything is allowed
        identity = f"spiffe://{self.domain}/ns/{caller['metadata']['namespace']}/sa/default"
        proven = self._is_injected(caller, unknown)
        seen = replace(call, identity=identity if proven else None, sni=call.sni if proven else "")
        return self.sidecars.status(pod, seen) == OK

    def _is_injected(self, pod: Manifest, unknown: bool) -> bool:
        labels = self.namespaces.get(pod["metadata"]["namespace"])
        if asked(pod) == "false":
            return False
        if labels is not None and INJECTION in labels:
            return bool(labels[INJECTION] == "enabled")
        if asked(pod) == "true":
            return True
        return unknown and (labels is None or not self.has_labels)


def asked(pod: Manifest) -> str | None:
    """Return the injection setting of a pod. A label takes precedence over an annotation."""
    metadata = pod["metadata"]
    for settings in (metadata.get("labels", {}), metadata.get("annotations", {})):
        if INJECT in settings:
            return str(settings[INJECT])
    return None
