"""Converts auth schemes to AuthConfig v1beta3, the one version that Authorino serves today.

A scheme with the field names of v1beta1 is renamed field by field; a later scheme has the right names already.
`audiences` exists in no version: it is left out here, and `authorino_checks` adds an equivalent check.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Final

from eastgate.convert.model import Manifest
from eastgate.reading.manifests import Plain

# Renames the fields of auth schemes of v1beta1 to those of v1beta3. Nothing else changes.


_PLACES: Final = {"custom_header": "customHeader", "query": "queryString", "cookie": "cookie"}


def object_of(value: Plain) -> Manifest:
    """Return a mapping, or an empty mapping if the value is none."""
    return dict(value) if isinstance(value, dict) else {}


def _items(value: Plain) -> list[Manifest]:
    return [object_of(item) for item in value] if isinstance(value, list) else []


def from_v1beta1(scheme: Mapping[str, Plain]) -> Manifest:
    """Return a valid scheme as plain data without nulls, with the field names of v1beta3."""
    spec: Manifest = {name: scheme[name] for name in ("hosts", "patterns", "when") if name in scheme}
    spec["authentication"] = _by_name(scheme.get("identity"), _identity)
    spec["metadata"] = _by_name(scheme.get("metadata"), lambda entry: _renamed(entry, http=_http))
    spec["authorization"] = _by_name(scheme.get("authorization"), _authorization)
    if "callbacks" in scheme:
        spec["callbacks"] = _by_name(scheme["callbacks"], lambda entry: _renamed(entry, http=_http))
    response: Manifest = {
        name: _denial(object_of(denial)) for name, denial in object_of(scheme.get("denyWith")).items()
    }
    entries = _items(scheme.get("response"))
    headers = [entry for entry in entries if entry.get("wrapper", "httpHeader") == "httpHeader"]
    others = [entry for entry in entries if entry not in headers]
    success: Manifest = {
        name: {str(entry["name"]): _convert_response(entry) for entry in listed}
        for name, listed in (("headers", headers), ("dynamicMetadata", others))
        if listed
    }
    spec["response"] = {**response, **({"success": success} if success else {})}
    return spec


def _by_name(entries: Plain, convert: Callable[[Manifest], Manifest]) -> Manifest:
    """Return a list of entries with names, as a mapping by name."""
    return {str(entry["name"]): convert(_common(entry)) for entry in _items(entries)}


def _common(entry: Manifest) -> Manifest:
    common = {name: value for name, value in entry.items() if name != "name"}
    if "cache" in common:
        cache = object_of(common["cache"])
        common["cache"] = {**cache, "key": _value(object_of(cache["key"]))}
    return common


def _value(value: Manifest) -> Manifest:
    """Return a literal value or a selector."""
    selected = object_of(value.get("valueFrom")).get("authJSON")
    return {"selector": selected} if selected is not None else {"value": value.get("value")}


def _values(entries: Plain) -> Manifest:
    return {str(entry["name"]): _value(entry) for entry in _items(entries)}


def _renamed(entry: Manifest, /, **fields: Callable[[Manifest], Manifest]) -> Manifest:
    return {name: fields[name](object_of(value)) if name in fields else value for name, value in entry.items()}


_METHODS: Final = {
    "oidc": ("jwt", {"endpoint": "issuerUrl"}),
    "mtls": ("x509", {}),
    "kubernetes": ("kubernetesTokenReview", {}),
    "oauth2": ("oauth2Introspection", {"tokenIntrospectionUrl": "endpoint"}),
    "plain": ("plain", {"authJSON": "selector"}),
}


def _identity(entry: Manifest) -> Manifest:
    converted: Manifest = {}
    for name, value in entry.items():
        if name in _METHODS:
            method, names = _METHODS[name]
            converted[method] = {names.get(field, field): inner for field, inner in object_of(value).items()}
        elif name == "apiKey":
            keys = object_of(value)
            labels = keys.pop("labelSelectors", None)
            converted["apiKey"] = {**({"selector": {"matchLabels": labels}} if labels is not None else {}), **keys}
        elif name == "credentials":
            converted["credentials"] = _credentials(object_of(value))
        elif name == "extendedProperties":
            properties = _items(value)
            for field, overwrite in (("defaults", False), ("overrides", True)):
                chosen: list[Plain] = [prop for prop in properties if (prop.get("overwrite") is True) is overwrite]
                if chosen:
                    converted[field] = _values(chosen)
        else:
            converted[name] = value
    return converted


def _credentials(credentials: Manifest) -> Manifest:
    where, key = str(credentials.get("in", "authorization_header")), credentials.get("keySelector")
    if where in _PLACES:
        return {_PLACES[where]: {"name": key}}
    return {"authorizationHeader": {"prefix": key} if key is not None else {}}


def _http(call: Manifest) -> Manifest:
    converted = {"url" if name == "endpoint" else name: value for name, value in call.items()}
    for name in ("bodyParameters", "headers"):
        if name in converted:
            converted[name] = _values(converted[name])
    return _renamed(converted, body=_value, credentials=_credentials)


def _authorization(entry: Manifest) -> Manifest:
    converted: Manifest = {}
    for name, value in entry.items():
        match name:
            case "json":
                converted["patternMatching"] = {"patterns": object_of(value).get("rules")}
            case "opa":
                names = {"inlineRego": "rego", "externalRegistry": "externalPolicy"}
                rego = {names.get(field, field): inner for field, inner in object_of(value).items()}
                converted["opa"] = _renamed(rego, externalPolicy=_http)
            case "authzed":
                check = _renamed(object_of(value), permission=_value)
                for party in ("subject", "resource"):
                    check[party] = {key: _value(object_of(part)) for key, part in object_of(check[party]).items()}
                converted["spicedb"] = check
            case "kubernetes":
                review = _renamed(object_of(value), user=_value)
                if "resourceAttributes" in review:
                    attributes = object_of(review["resourceAttributes"])
                    review["resourceAttributes"] = {
                        key: _value(object_of(attribute)) for key, attribute in attributes.items()
                    }
                converted["kubernetesSubjectAccessReview"] = review
            case _:
                converted[name] = value
    return converted


def _convert_response(entry: Manifest) -> Manifest:
    converted = {name: value for name, value in _common(entry).items() if name not in ("wrapper", "wrapperKey")}
    if "json" in converted:
        converted["json"] = {"properties": _values(object_of(converted["json"]).get("properties"))}
    if "wristband" in converted:
        wristband = object_of(converted["wristband"])
        claims = {"customClaims": _values(wristband["customClaims"])} if "customClaims" in wristband else {}
        converted["wristband"] = {**wristband, **claims}
    converted = _renamed(converted, plain=_value)
    return {"key": entry["wrapperKey"], **converted} if "wrapperKey" in entry else converted


def _denial(denial: Manifest) -> Manifest:
    converted = _renamed(denial, message=_value, body=_value)
    return {**converted, "headers": _values(converted["headers"])} if "headers" in converted else converted


API_VERSION: Final = "authorino.kuadrant.io/v1beta3"

_SECTIONS: Final = ("authentication", "metadata", "authorization")


def auth_config(scheme: Mapping[str, Plain]) -> Manifest:
    """Return the AuthConfig `spec` of a valid scheme, as plain data without nulls."""
    old = "identity" in scheme or any(isinstance(scheme.get(name), list) for name in (*_SECTIONS, "response"))
    renamed = from_v1beta1(scheme) if old or "denyWith" in scheme else dict(scheme)
    spec = {name: value for name, value in renamed.items() if value not in ({}, [])}
    for section in _SECTIONS:
        if section in spec:
            spec[section] = _in_order(section, object_of(spec[section]))
    if "authentication" in spec:
        spec["authentication"] = {
            n: _without_audiences(object_of(e)) for n, e in object_of(spec["authentication"]).items()
        }
    if "response" in spec:
        spec["response"] = _response(object_of(spec["response"]))
    return spec


def _without_audiences(entry: Manifest) -> Manifest:
    if "jwt" not in entry:
        return entry
    return {**entry, "jwt": {name: value for name, value in object_of(entry["jwt"]).items() if name != "audiences"}}


def _in_order(section: str, entries: Manifest) -> Manifest:
    """Set priorities that keep the written order where the order matters.

    Authorino evaluates entries of equal priority concurrently.

    The first identity that recognizes the caller counts. In other sections, an entry may use the results of earlier
    entries.
    """
    priorities = [object_of(entry).get("priority", 0) for entry in entries.values()]
    if len(set(map(str, priorities))) == len(priorities):
        return entries
    if section != "authentication" and f"auth.{section}" not in json.dumps(entries):
        return entries
    ranked = sorted(range(len(priorities)), key=lambda index: (_number(priorities[index]), index))
    ranks = {index: rank for rank, index in enumerate(ranked)}
    return {name: {**object_of(entry), "priority": ranks[index]} for index, (name, entry) in enumerate(entries.items())}


def _number(value: Plain) -> int:
    return value if isinstance(value, int) else 0


def _response(response: Manifest) -> Manifest:
    """Rename `filters` of AuthPolicy to `dynamicMetadata`, as AuthConfig calls it."""
    success = object_of(response.get("success"))
    if "filters" in success:
        success["dynamicMetadata"] = success.pop("filters")
    converted: Manifest = {
        part: {name: _plain(object_of(entry)) for name, entry in object_of(each).items()}
        for part, each in success.items()
    }
    return {**response, "success": converted} if converted else response


def _plain(entry: Manifest) -> Manifest:
    """Convert a literal plain value to an expression. Authorino prints other literals in Go's internal format."""
    plain = object_of(entry.get("plain"))
    if "value" not in plain:
        return entry
    return {**entry, "plain": {"expression": json.dumps(plain["value"], ensure_ascii=False)}}
