"""Callers: the known attributes of every caller that a source may mean."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import assert_never

from eastgate.authority.questions.derived import address_of
from eastgate.basics.diagnostics import did_you_mean
from eastgate.cluster import (
    PodsOfAccount,
    Workload,
    World,
    account_of,
    dns_label_problem,
    dns_subdomain_problem,
    ends,
    service_account_id,
    spiffe_problem,
)
from eastgate.cluster.ends import Values
from eastgate.cluster.question import Question
from eastgate.cluster.question_errors import BAD_SOURCE, NOT_DECLARED, QuestionError
from eastgate.cluster.unread import Callers
from eastgate.ir.attributes import ADDRESS, IDENTITY, MESH_NAME, SOURCE_WORKLOAD
from eastgate.settings import Settings


def callers(question: Question, world: World, settings: Settings) -> Iterator[Values]:
    """Yield the known attributes of each possible caller of a question. Raises QuestionError if there is none."""
    address: Values = {} if question.source_ip is None else {ADDRESS: address_of(question.source_ip)}
    unproven: Values = {IDENTITY: None, MESH_NAME: None} if question.plaintext else {}
    for values in _identities(question.source, world, settings):
        yield {**values, **address, **unproven}


def _identities(source: ends.Source, world: World, settings: Settings) -> Iterator[Values]:
    match source:
        case ends.Anonymous():
            yield {IDENTITY: None, MESH_NAME: None}
        case ends.UnknownCaller():
            yield {}
        case ends.SpiffeId():
            way_out = "write spiffe://<trust domain>/<path>, as certificates do"
            _check(source, spiffe_problem(source.value), "SPIFFE ID", way_out)
            yield {IDENTITY: source.value, MESH_NAME: source.value}
        case ends.CertificateName():
            way_out = "write id:<name> in lower case, as certificates do"
            _check(source, dns_subdomain_problem(source.value), "DNS name", way_out)
            yield {IDENTITY: None, MESH_NAME: source.value}
        case ends.Address():
            yield {IDENTITY: None, MESH_NAME: None, ADDRESS: address_of(source.value)}
        case ends.ServiceAccount(namespace=namespace, name=name):
            way_out = "write sa:<namespace>/<name>, with names that Kubernetes takes"
            what = f"service account, since `{namespace}` is no namespace"
            _check(source, dns_label_problem(namespace), what, way_out)
            _check(source, dns_subdomain_problem(name), f"service account, since `{name}` is no name", way_out)
            yield _account(namespace, name, settings)
        case ends.Pod():
            for workload in workloads_of(source, world):
                values = {**_workload_identity(workload, settings), SOURCE_WORKLOAD: workload.key}
                address = world.address_of(workload)
                yield {**values, ADDRESS: address} if address is not None else values
        case _:
            assert_never(source)


def _check(source: ends.Source, problem: str | None, what: str, way_out: str) -> None:
    """Raise QuestionError for an identity that no caller can have."""
    if problem is not None:
        raise QuestionError(BAD_SOURCE, f"`{source}` is no {what}: {problem}", way_out)


def _account(namespace: str, name: str, settings: Settings) -> Values:
    """Return the names of a service account in each dialect."""
    return {
        IDENTITY: service_account_id(settings.trust_domain, namespace, name),
        MESH_NAME: settings.mesh_name(namespace, name),
    }


def _workload_identity(workload: Workload, settings: Settings) -> Values:
    if workload.is_pod:
        return _account(workload.namespace, workload.service_account, settings)
    return {IDENTITY: workload.identity_in(settings.trust_domain), MESH_NAME: workload.mesh_name}


def callers_of(question: Question, world: World, settings: Settings) -> Callers:
    """Return the pods that a question comes from, for the network; none for callers outside.

    An account means all its pods. If no manifest has such a pod, it means any pod of its namespace.
    """
    source = question.source
    if isinstance(source, ends.UnknownCaller):
        return Callers(anybody=True)
    pods: dict[str, Workload] = {}
    at = question.source_ip or (source.value if isinstance(source, ends.Address) else None)
    if at is not None:
        address = address_of(at)
        pods = {pod.key: pod for pod in world.workloads.values() if world.address_of(pod) == address}
    if isinstance(source, ends.Pod):
        pods |= {pod.key: pod for pod in workloads_of(source, world)}
    account = account_named(source, settings)
    if account is None:
        return Callers(tuple(pods.values()))
    of_account = [world.workloads[key] for key in sorted(world.select(PodsOfAccount(*account)))]
    return Callers((*pods.values(), *of_account), None if of_account else account[0])


def account_named(source: ends.Source, settings: Settings) -> tuple[str, str] | None:
    """Return the namespace and name of the account behind an identity, in the form of some dialect."""
    match source:
        case ends.ServiceAccount():
            return source.namespace, source.name
        case ends.SpiffeId():
            domain, *account = account_of(source.value) or (None,)
            return (account[0], account[1]) if domain == settings.trust_domain else None
        case ends.CertificateName(value=name):
            labels = name.split(".")
            splits = ((labels[at], ".".join(labels[:at])) for at in range(1, len(labels)))
            return next((account for account in splits if settings.mesh_name(*account) == name), None)
        case _:
            return None


def workloads_of(end: ends.Pod, world: World) -> tuple[Workload, ...]:
    """Return the pods of an end of a question. Raises QuestionError if no manifest has one."""
    if end.owner is None:
        workloads = world.find_workloads(end.namespace, end.name)
    else:
        workloads = world.owned_by(end.owner, end.namespace, end.name)
    if not workloads and end.owner is not None and world.find_workloads(end.namespace, end.name):
        message = f"no manifest declares {end.owner} {end.key}"
        raise QuestionError(NOT_DECLARED, message, f"pods of that name have another owner: write pod:{end.key}")
    if not workloads:
        raise not_declared(end.owner or "Pod", end.key, world.workloads)
    return workloads


def not_declared(kind: str, key: str, declared: Mapping[str, object]) -> QuestionError:
    """Return the error for an object that no manifest declares, with the nearest name."""
    near = did_you_mean(key, declared)
    return QuestionError(NOT_DECLARED, f"no manifest declares {kind} {key}", f"did you mean {near}?" if near else None)
