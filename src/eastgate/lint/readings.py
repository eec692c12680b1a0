"""Where two readings of a specification would decide differently; and what an audited policy would change.

Both are one question: the same policies, put together in another way, decide some request otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from eastgate import dialects
from eastgate.diagnostics import Code
from eastgate.dialects.accesspolicy.settings import AccessSettings, UnlistedCaller
from eastgate.dialects.gep3779.settings import DenyOnly, GepSettings, ServiceTarget
from eastgate.dialects.rejected import Policy as Rejected
from eastgate.engine.compiled import Program, compile_layers
from eastgate.lint import codes, locating
from eastgate.lint.ground import Ground, Group, Policy, enumerated
from eastgate.lint.model import Finding, command
from eastgate.lint.samples import sampled
from eastgate.places import Span
from eastgate.policy import Attachment, Known, Request
from eastgate.policy.attributes import ADDRESS, PORT, Attribute
from eastgate.questions import Question
from eastgate.settings import MeshMode, Settings

__all__ = ["assembled", "audited", "readings"]


def readings(ground: Ground) -> Iterator[Finding]:
    """Each point at which another reading would decide a request otherwise."""
    for group in ground.groups:
        said = {one for layer in group.program.layers for chain in layer.chains for one in chain.readings}
        if any(one.startswith("denyOnly") for one in said):
            yield from _reading(group, ground, "denyOnly", codes.READING_DENY_ONLY, _other_deny_only)
        if any(one.startswith("unlistedCaller") for one in said):
            yield from _reading(group, ground, "unlistedCaller", codes.READING_UNLISTED_CALLER, _other_unlisted)
        if any(one.service is not None for one in group.attached):
            yield from _reading(group, ground, "serviceTarget", codes.READING_SERVICE_TARGET, _other_service_target)


def _other_deny_only(settings: Settings) -> Settings:
    gep = settings.section(GepSettings)
    return settings.having(replace(gep, deny_only=DenyOnly.ALLOW if gep.deny_only is DenyOnly.DENY else DenyOnly.DENY))


def _other_unlisted(settings: Settings) -> Settings:
    denies = settings.section(AccessSettings).unlisted_caller is UnlistedCaller.DENY
    return settings.having(AccessSettings(UnlistedCaller.PROCEED if denies else UnlistedCaller.DENY))


def _other_service_target(settings: Settings) -> Settings:
    gep = settings.section(GepSettings)
    if gep.service_target is ServiceTarget.TRAFFIC:
        return settings.having(replace(gep, service_target=ServiceTarget.WORKLOADS))
    ambient = replace(settings, mesh_mode=MeshMode.AMBIENT)
    return ambient.having(replace(gep, service_target=ServiceTarget.TRAFFIC))


def _reading(
    group: Group, ground: Ground, setting: str, code: Code, other_of: Callable[[Settings], Settings]
) -> Iterator[Finding]:
    other = other_of(ground.settings)
    found = _difference(group, assembled(group, group.attached, other, ground), ground)
    if found is None:
        return
    question, allowed = found
    now, then = ground.settings.to_json()[setting], other.to_json()[setting]
    message = (
        f"{group.named}: {question} is {_verdict(allowed)} with {setting}: {now}, "
        f"and {_verdict(not allowed)} with {setting}: {then}"
    )
    policies = [one.policy for one in group.attached if not one.policy.audit]
    concerned = [p for p in policies if _is_concerned(p, group, setting)] or policies
    subjects = (*dict.fromkeys(str(policy.ref) for policy in concerned), *group.subjects)
    span = locating.name_of(concerned[0].span) if concerned else None
    help_ = f"say which one your mesh follows: --set {setting}={now}, or {setting} in eastgate.yaml"
    yield Finding(code, message, span, help_, subjects, command(question))


def _is_concerned(policy: Policy, group: Group, setting: str) -> bool:
    if setting == "serviceTarget":
        return any(one.policy is policy and one.service is not None for one in group.attached)
    return str(getattr(policy, "action", "")) == ("DENY" if setting == "denyOnly" else "ALLOW")


def _verdict(allowed: bool) -> str:
    return "allowed" if allowed else "denied"


# The same policies, put together in another way


def assembled(group: Group, attached: Sequence[Attachment[Policy]], settings: Settings, ground: Ground) -> Program:
    """The program of a group, as other settings or other policies would make it."""
    stances = (
        dialects.stances(ground.workload(group.first), attached, settings, ground.world) if group.is_workload else ()
    )
    return compile_layers(dialects.assemble(attached, settings, ground.world, stances))


def _difference(group: Group, other: Program, ground: Ground) -> tuple[Question, bool] | None:
    """A question that the two decide differently, and what is decided now."""
    looked_at = frozenset[Attribute]().union(*(one.looks_at for p in (group.program, other) for one in p.layers))
    for question, arrival in sampled(group, ground):
        request = _known(arrival.request, looked_at)
        allowed = bool(group.program.decide(request) & 1)
        if bool(other.decide(request) & 1) is not allowed:
            return question, allowed
    return None


def _known(request: Request, looked_at: frozenset[Attribute]) -> Request:
    """What the question leaves out is not there: an example is about one request."""
    absent: dict[Attribute, Known] = dict.fromkeys(looked_at - request.values.keys() - {PORT, ADDRESS})
    return Request({**request.values, **absent}, request.answers) if absent else request


# Audited policies


def audited(ground: Ground) -> Iterator[Finding]:
    """What each audited policy would change, by one example."""
    for policy in ground.policies:
        if not policy.audit or isinstance(policy, Rejected):
            continue
        groups = [g for g in ground.groups if any(one.policy is policy for one in g.attached)]
        enforced = replace(policy, audit=False)
        changes = [(g, found) for g in groups[:50] if (found := _change(g, policy, enforced, ground)) is not None]
        if changes:
            question, allowed = changes[0][1]
            points = enumerated([g.first for g, _ in changes])
            said = f"{question} is {_verdict(allowed)} now, and would be {_verdict(not allowed)}"
            message = f"if it were enforced, {policy.ref} would change {points}: {said}"
            help_ = "remove the annotation eastgate.dev/mode: audit to enforce it"
            subjects = (str(policy.ref), *(subject for g, _ in changes for subject in g.subjects))
            yield Finding(codes.AUDIT_WOULD_CHANGE, message, _mode_span(policy), help_, subjects, command(question))


def _change(group: Group, policy: Policy, enforced: Policy, ground: Ground) -> tuple[Question, bool] | None:
    attached = [replace(one, policy=enforced) if one.policy is policy else one for one in group.attached]
    return _difference(group, assembled(group, attached, ground.settings, ground), ground)


def _mode_span(policy: Policy) -> Span | None:
    return locating.annotation(policy.span, "eastgate.dev/mode")
