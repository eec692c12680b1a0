"""Built-in functions of base64, hexadecimal, queries, JSON, tokens, digests."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Final
from urllib.parse import quote_plus, unquote_to_bytes

from eastgate.basics.regexes import regex
from eastgate.dialects.kuadrant.rego.functions.registry import Bounded, Failed, function
from eastgate.dialects.kuadrant.rego.texts import marshalled
from eastgate.dialects.kuadrant.rego.values import Object, Set, Value, number

_BASE64: Final = regex(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?", re.ASCII)
_BAD_PERCENT: Final = regex(r"%(?![0-9A-Fa-f]{2})", re.ASCII)
_MAX_DEPTH: Final = 200


def _as_text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise Bounded("it decodes something that is no text") from None


def _decoded(text: str) -> bytes:
    plain = text.replace("\r", "").replace("\n", "")
    if not _BASE64.fullmatch(plain):
        raise Failed
    return base64.b64decode(plain)


def _decoded_url(text: str) -> bytes:
    if "+" in text or "/" in text:
        raise Failed
    padded = text + "=" * (-len(text) % 4)
    return _decoded(padded.replace("-", "+").replace("_", "/"))


@function("base64.encode", "string", result="string")
def base64_encode(text: str) -> Value:
    """Encode with padding."""
    return base64.b64encode(text.encode()).decode()


@function("base64.decode", "string", result="string")
def base64_decode(text: str) -> Value:
    """Decode; the padding must be there."""
    return _as_text(_decoded(text))


@function("base64.is_valid", "any", result="boolean")
def base64_is_valid(text: Value) -> Value:
    if not isinstance(text, str):
        return False
    try:
        _decoded(text)
    except Failed:
        return False
    return True


@function("base64url.encode", "string", result="string")
def base64url_encode(text: str) -> Value:
    return base64.urlsafe_b64encode(text.encode()).decode()


@function("base64url.encode_no_pad", "string", result="string")
def base64url_encode_no_pad(text: str) -> Value:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@function("base64url.decode", "string", result="string")
def base64url_decode(text: str) -> Value:
    """Decode, with padding or without."""
    return _as_text(_decoded_url(text))


@function("hex.encode", "string", result="string")
def hex_encode(text: str) -> Value:
    return text.encode().hex()


@function("hex.decode", "string", result="string")
def hex_decode(text: str) -> Value:
    try:
        return _as_text(binascii.unhexlify(text))
    except (binascii.Error, ValueError):
        raise Failed from None


@function("urlquery.encode", "string", result="string")
def urlquery_encode(text: str) -> Value:
    return quote_plus(text, safe="")


@function("urlquery.decode", "string", result="string")
def urlquery_decode(text: str) -> Value:
    if _BAD_PERCENT.search(text):
        raise Failed
    return _as_text(unquote_to_bytes(text.replace("+", " ")))


@function("urlquery.encode_object", "object", result="string")
def urlquery_encode_object(value: Object) -> Value:
    pairs: list[str] = []
    for key, item in value.items():
        several = tuple(item) if isinstance(item, tuple | Set) else (item,)
        if not isinstance(key, str) or not all(isinstance(part, str) for part in several):
            raise Failed
        pairs += [f"{quote_plus(key, safe='')}={quote_plus(str(part), safe='')}" for part in several]
    return "&".join(pairs)


@function("json.marshal", "any", result="string")
def json_marshal(value: Value) -> Value:
    return marshalled(value)


@function("json.unmarshal", "string")
def json_unmarshal(text: str) -> Value:
    return _read(text)


@function("json.is_valid", "any", result="boolean")
def json_is_valid(text: Value) -> Value:
    if not isinstance(text, str):
        return False
    try:
        _read(text)
    except Failed:
        return False
    return True


def _read(text: str) -> Value:
    if text.count("[") + text.count("{") > _MAX_DEPTH:
        raise Bounded("it reads JSON that is too large")
    if re.search(r"\\u[dD][89a-fA-F]", text) or "\ufeff" in text:
        raise Bounded("it reads JSON that is not quite text")
    try:
        return _value(json.loads(text, parse_float=Decimal, parse_constant=_not_json))
    except (ValueError, ArithmeticError):
        raise Failed from None


def _not_json(text: str) -> object:
    raise ValueError(text)


def _value(data: object) -> Value:
    match data:
        case dict():
            return Object((key, _value(item)) for key, item in data.items())
        case list():
            return tuple(_value(item) for item in data)
        case Decimal():
            if abs(data.adjusted()) > 40:
                raise Bounded("it reads numbers that are too large")
            return number(data)
    return data  # type: ignore[return-value]  # null, a boolean, an integer or a text


@function("io.jwt.decode", "string", result="array")
def jwt_decode(token: str) -> Value:
    """Return header, payload and signature of a token, unverified."""
    parts = token.split(".")
    if len(parts) != 3:
        raise Failed
    header = _read(_as_text(_decoded_url(parts[0])))
    if isinstance(header, Object) and ("cty" in header or "enc" in header):
        raise Bounded("it reads a token inside a token")
    payload = _read(_as_text(_decoded_url(parts[1])))
    if not isinstance(header, Object) or not isinstance(payload, Object):
        raise Failed
    return header, payload, _decoded_url(parts[2]).hex()


def _verified(name: str) -> Callable[[str, str], Value]:
    def verify(token: str, secret: str) -> Value:
        header, _, _ = jwt_decode(token)
        del header
        signed, _, signature = token.rpartition(".")
        return hmac.compare_digest(hmac.digest(secret.encode(), signed.encode(), name), _decoded_url(signature))

    return verify


def _declare_digests() -> None:
    for name in ("md5", "sha1", "sha256"):
        function(f"crypto.{name}", "string", result="string")(
            lambda text, name=name: hashlib.new(name, text.encode(), usedforsecurity=False).hexdigest()
        )
    for name in ("md5", "sha1", "sha256", "sha512"):
        function(f"crypto.hmac.{name}", "string", "string", result="string")(
            lambda text, key, name=name: hmac.digest(key.encode(), text.encode(), name).hex()
        )
    for size in (256, 384, 512):
        function(f"io.jwt.verify_hs{size}", "string", "string", result="boolean")(_verified(f"sha{size}"))


_declare_digests()


@function("crypto.hmac.equal", "string", "string", result="boolean")
def hmac_equal(left: str, right: str) -> Value:
    return hmac.compare_digest(left.encode(), right.encode())
