"""The status of a policy: conditions for each thing that it applies to (GEP-713), or conditions alone."""

from __future__ import annotations

from eastgate.reports.crds.openapi import Schema

_LABELS = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"


def _text(about: str, **more: object) -> Schema:
    return {"type": "string", "description": about, **more}


def _conditions(most: int) -> Schema:
    condition: Schema = {
        "type": "object",
        "properties": {
            "type": _text("What the condition is about, such as Accepted.", maxLength=316),
            "status": _text("Whether it holds.", enum=["True", "False", "Unknown"]),
            "reason": _text("Why, in one word.", minLength=1, maxLength=1024),
            "message": _text("Why, in a sentence.", maxLength=32768),
            "observedGeneration": {
                "type": "integer",
                "format": "int64",
                "minimum": 0,
                "description": "The generation of the resource that the condition is about.",
            },
            "lastTransitionTime": _text("Since when it holds or does not.", format="date-time"),
        },
        "required": ["type", "status", "reason", "message", "lastTransitionTime"],
    }
    return {
        "type": "array",
        "description": "What is true of the resource.",
        "maxItems": most,
        "items": condition,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    }


_ANCESTOR: Schema = {
    "type": "object",
    "properties": {
        "ancestorRef": {
            "type": "object",
            "description": "What the entry is about: the target, or what it belongs to.",
            "properties": {
                "group": _text("Its group.", maxLength=253),
                "kind": _text("Its kind.", maxLength=63),
                "namespace": _text("Its namespace.", maxLength=63),
                "name": _text("Its name.", minLength=1, maxLength=253),
                "sectionName": _text("A part of it.", maxLength=253),
                "port": {
                    "type": "integer",
                    "format": "int32",
                    "minimum": 1,
                    "maximum": 65535,
                    "description": "A port.",
                },
            },
            "required": ["name"],
        },
        "controllerName": _text(
            "Who wrote the entry: <domain>/<path>.",
            minLength=1,
            maxLength=253,
            pattern=rf"^{_LABELS}/[A-Za-z0-9/._~%-]+$",
        ),
        "conditions": _conditions(8),
    },
    "required": ["ancestorRef", "controllerName", "conditions"],
}

POLICY_STATUS: Schema = {
    "type": "object",
    "description": "What has become of the policy.",
    "properties": {
        "ancestors": {
            "type": "array",
            "description": "For each thing that the policy applies to, and each controller, whether it is in force.",
            "maxItems": 16,
            "items": _ANCESTOR,
            "x-kubernetes-list-type": "atomic",
        }
    },
    "required": ["ancestors"],
}

CONDITIONS: Schema = {
    "type": "object",
    "description": "What has become of the resource.",
    "properties": {
        "observedGeneration": {
            "type": "integer",
            "format": "int64",
            "minimum": 0,
            "description": "The generation of the resource that the status is about.",
        },
        "conditions": _conditions(8),
    },
}
