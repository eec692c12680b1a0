"""Compares a call with what `check` answers, and says why the two differ where they do.

A local mesh is not the cluster that `check` is about: its addresses are those of one machine, all workloads have a
proxy of Eastgate's, and its gateways have no network in front of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from eastgate.authority.authority import Authority
from eastgate.authority.decisions import Decision
from eastgate.authority.questions import Question, QuestionError
from eastgate.authority.reading import ManifestError
from eastgate.cluster.ends import Address, Anonymous
from eastgate.ir import Site
from eastgate.local.call_results import CallResult, CheckedCall
from eastgate.local.mesh import LocalMesh
from eastgate.settings import Settings

Check: TypeAlias = Callable[[Settings], Authority]
_AT_GATEWAY = "the gateways of a local mesh do not enforce network policies"
_NO_HANDSHAKE = "the TLS handshake failed, so that no policy was asked"
_CLOSED = "the port is closed, since a policy there cannot be enforced"
_BEYOND = "the gateway decides by what no question tells: an answer of an authorizer, a route, a session"
_BEHIND_GATEWAY = "the gateway let it through, and a sidecar behind the gateway closed the connection"
_UNPROVEN = "the caller has no certificate, and its address proves no pod here (with `up --by-address` it does)"
_OTHER_ADDRESSES = "the call comes from an address of this machine, and `check` is about the addresses of the cluster"
_UNEXPLAINED = "not explained"


async def with_check(mesh: LocalMesh, call: CallResult, asked: Question) -> CallResult:
    """Return the call with what `check` answers to its question; as it is where this mesh cannot ask."""
    if mesh.check is None:
        return call
    question = replace(call.question, source_ip=asked.source_ip)
    answer = await asyncio.to_thread(_answer, mesh.check, mesh.chosen_settings, question)
    compared = replace(call, check=CheckedCall(question, answer))
    if compared.is_as_checked or not isinstance(answer, Decision):
        return compared
    cause = await asyncio.to_thread(_cause, mesh, mesh.check, compared, question, answer)
    return replace(compared, check=CheckedCall(question, answer, (cause,)))


def _answer(check: Check, settings: Settings, question: Question) -> Decision | QuestionError:
    """Return what `check` answers with some settings. Manifests with errors give no answer: the mesh enforces older."""
    try:
        return check(settings).decide(question)
    except QuestionError as error:
        return error
    except ManifestError as error:
        first = error.diagnostics[0]
        return QuestionError(first.code, first.message, first.help, error.diagnostics)


def _cause(mesh: LocalMesh, check: Check, call: CallResult, question: Question, answer: Decision) -> str:
    """Return why the mesh does otherwise than `check` answers. Settings or addresses are it where `check` says so."""
    workload, _, port = call.at.rpartition(":")
    is_at_gateway = workload in mesh.gateways
    is_unproven = call.observation is not None and call.observation.peer in (None, "none") and _is_of_pod(question)
    if call.observation is not None and call.observation.level == "handshake":
        return _NO_HANDSHAKE
    if not call.allowed and (workload, int(port)) in mesh.enforcement.closed:
        return _CLOSED
    if call.is_beyond_engine:
        return _BEYOND
    if is_at_gateway and _is_by_network(answer):
        return _AT_GATEWAY if call.answered else _BEHIND_GATEWAY
    if is_unproven and not is_at_gateway and _is_by_network(call.decision):
        return _UNPROVEN
    given, used = mesh.chosen_settings.to_json(), mesh.settings.to_json()
    changed = [name for name in used if used[name] != given[name]]
    if changed and _is_answered(check, mesh.settings, question, call):
        settings = ", ".join(f"{name}: {used[name]}" for name in changed)
        options = " ".join(f"--set {name}={used[name]}" for name in changed)
        return f"a mesh decides with {settings}; so does `check {options}`"
    if _is_answered(check, mesh.settings, call.question, call):
        return _OTHER_ADDRESSES
    return _UNEXPLAINED


def _is_answered(check: Check, settings: Settings, question: Question, call: CallResult) -> bool:
    """Return whether `check` answers what the proxy did."""
    answer = _answer(check, settings, question)
    return isinstance(answer, Decision) and answer.allowed == call.allowed


def _is_of_pod(question: Question) -> bool:
    """Return whether a question is about a caller with a pod, who has an identity to prove."""
    return not isinstance(question.source, Anonymous | Address)


def _is_by_network(decision: Decision) -> bool:
    """Return whether a network policy decided."""
    return any(layer.at.site is Site.NETWORK and layer.name == decision.outcome.layer for layer in decision.layers)
