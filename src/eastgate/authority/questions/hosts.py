"""Hosts outside of the cluster, as questions about egress name them."""

from __future__ import annotations

from eastgate.basics.regexes import regex
from eastgate.cluster import World, ends
from eastgate.cluster.question_errors import BAD_DESTINATION, QuestionError
from eastgate.ir.addresses import parse_address
from eastgate.settings import Settings

_DNS_NAME = regex(r"[\w-]+(\.[\w-]+)*\.?")
_IN_URL = regex(r"([a-z]+://)?(?P<name>[\w-]+(\.[\w-]+)*\.?)(:(?P<port>\d{1,5}))?(/.*)?")


def check_host(to: ends.Host, world: World, settings: Settings) -> None:
    """Raise QuestionError where a host is an address, no name, or the name of a Service: none is a host outside."""
    if _is_address(to.value):
        raise QuestionError(BAD_DESTINATION, f"{to} is an address", f"write --to ip:{to.value}")
    if _DNS_NAME.fullmatch(to.value) is None:
        parts = _IN_URL.fullmatch(to.value)
        port = f" --port {parts['port']}" if parts is not None and parts["port"] else ""
        help_ = f"write --to host:{parts['name']}{port}" if parts is not None else "write --to host:<name>"
        raise QuestionError(BAD_DESTINATION, f"{to} is not the name of a host", help_)
    own = _service_named(to.value, world, settings)
    if own is not None:
        raise QuestionError(BAD_DESTINATION, f"{to} is a name inside the cluster", f"write --to service:{own}")


def _is_address(text: str) -> bool:
    try:
        parse_address(text)
    except ValueError:
        return False
    return True


def _service_named(host: str, world: World, settings: Settings) -> str | None:
    """Return the key of the Service that a DNS name of the cluster means; None for a name outside.

    Pods resolve `name`, `name.namespace`, and both with `.svc` and the domain of the cluster behind.
    """
    name = host.lower().rstrip(".")
    ends_inside = next((end for end in (f".svc.{settings.cluster_domain}", ".svc") if name.endswith(end)), None)
    labels = name.removesuffix(ends_inside or "").split(".")
    key = f"{labels[-1]}/{labels[-2]}" if len(labels) > 1 else f"NAMESPACE/{name}"
    return key if ends_inside is not None or len(labels) == 1 or key in world.services else None
