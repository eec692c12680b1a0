"""Completion of sources and destinations, from the manifests that are already on the command line."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from eastgate.authority.authority import Authority, programs_of
from eastgate.authority.environments import Deployment, deployments
from eastgate.authority.leaving_out import leave_out
from eastgate.authority.reading import ManifestError, read_manifests
from eastgate.cluster.ends import AuthConfig, Host
from eastgate.reading.manifests import Bounds, Kustomized

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def sources(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete service accounts and pods of the manifests, and the other forms."""
    authority = _authority(context)
    words: list[str] = ["anonymous", "sa:", "pod:", "spiffe://", "ip:"]
    if authority is not None:
        accounts = {f"{w.namespace}/{w.service_account}" for w in authority.world.workloads.values() if w.is_pod}
        accounts |= set(authority.world.service_accounts)
        words += [f"sa:{account}" for account in sorted(accounts)]
        words += [f"pod:{pod}" for pod in sorted(authority.world.workloads)]
    return matching(words, incomplete)


def destinations(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete Pods, Services, Gateways, Backends and policies for hosts of the manifests, and their hosts."""
    authority = _authority(context)
    words: list[str] = ["pod:", "service:", "gateway:", "backend:", f"{AuthConfig.kind}:", Host.prefix]
    if authority is not None:
        words += [f"pod:{pod}" for pod in sorted(authority.world.workloads)]
        words += [f"service:{service}" for service in sorted(authority.world.services)]
        words += [f"gateway:{gateway}" for gateway in sorted(authority.world.gateways)]
        words += [f"backend:{backend}" for backend in sorted(authority.world.backends)]
        refs = sorted(programs_of(authority).host_refs)
        words += [f"{AuthConfig.kind}:{ref.namespace}/{ref.name}" for ref in refs]
        hosts = {host for ref in refs for host in programs_of(authority).hosts_of(ref) or ()}
        words += [f"host:{host}" for host in sorted(hosts) if "*" not in host]
    return matching(words, incomplete)


def kinds_and_names(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete kinds, and then the names of the kind that is already on the command line."""
    from eastgate.reports.cluster import Cluster  # completion of other arguments does not need it
    from eastgate.reports.describe import KINDS, UnknownKind, names_of

    words = context.params.get("words") or ()
    if not words:
        return matching([*KINDS, "workload"], incomplete)
    authority = _authority(context)
    if authority is None:
        return []
    try:
        return matching(names_of(Cluster(authority), words[0], context.params.get("namespace")), incomplete)
    except UnknownKind:
        return []


def environments(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the environments of the folders that are already on the command line."""
    found = _deployments(context)
    names = dict.fromkeys(environment.name for deployment in found for environment in deployment.environments)
    return matching(names, incomplete)


def _deployments(context: click.Context) -> list[Deployment]:
    files = [*(context.params.get("files") or ()), *(context.params.get("more_files") or ())]
    kustomized = list(map(Kustomized, context.params.get("kustomize") or ()))
    if not (files or kustomized) or "-" in files:
        return []
    paths = (*files, *kustomized)
    try:
        return deployments(paths, Bounds.of(paths), context.params.get("environments") or ())
    except (ManifestError, OSError):
        return []


def _authority(context: click.Context) -> Authority | None:
    for deployment in _deployments(context):  # of several environments, the first readable one
        with suppress(ManifestError, OSError):  # a completion does not report broken manifests: the command will
            manifests = read_manifests(deployment.paths)
            leave_out(manifests)
            return Authority(manifests, strict=False)
    return None


def matching(words: Iterable[str], incomplete: str) -> list[CompletionItem]:
    """Return the words with this prefix, except words that cannot be typed: a shell would print them unescaped."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(word) for word in words if word.startswith(incomplete) and word.isprintable()]
