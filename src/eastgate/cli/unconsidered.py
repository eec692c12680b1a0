"""The output of commands about unread objects, and the exit status for them."""

from __future__ import annotations

from collections.abc import Iterable

from eastgate.authority.authority import Authority
from eastgate.authority.decisions import Decision
from eastgate.authority.questions import NOT_DECLARED, QuestionError
from eastgate.basics.diagnostics.printable import printable
from eastgate.cli.options import Sources
from eastgate.cli.output import ALLOWED, DENIED, PARTIAL, mark_absent, print_lines
from eastgate.cluster import Everything, PodsAcross, PodsMatching, Selector, Target
from eastgate.cluster.unread import (
    Handling,
    Standing,
    Unconsidered,
    Unread,
    describe_unconsidered,
    list_left_out,
    standing,
)


def status_of(decision: Decision, handling: Handling) -> int:
    """Return the exit status of an answer."""
    if standing(decision.unconsidered, handling, allowed=decision.allowed) is Standing.PARTIAL:
        return PARTIAL
    return ALLOWED if decision.allowed else DENIED


def note_absence(error: QuestionError, sources: Sources, authority: Authority, namespace: str | None = None) -> None:
    """Note that the environment lacks an end of the question, if that is the reason for the error.

    `namespace` is that of the destination. Policies here about the whole namespace may apply to it in another
    environment.
    """
    if error.diagnostic.code is not NOT_DECLARED or not is_whole(sources, authority):
        return
    if not _is_about_others(authority) and not _is_about_all_of(namespace, authority):
        mark_absent()


def _is_about_others(authority: Authority) -> bool:
    """Return whether policies here may be about workloads of another environment, as they select nothing here."""
    policies, world = authority.policies, authority.world
    if not world.workloads:
        return bool(policies) or any(unread.kind.is_deployed for unread in authority.unread_objects.objects)
    return any(not any(world.select(target) for target in policy.targets) for policy in policies if policy.targets)


def _is_about_all_of(namespace: str | None, authority: Authority) -> bool:
    """Return whether a policy is about every pod of a namespace, in any environment."""
    if namespace is None:
        return False
    targets = (target for policy in authority.policies for target in policy.targets)
    deployed = (
        unread for unread in authority.unread_objects.objects if unread.kind.is_deployed and unread.part is None
    )
    unread = (
        target for each in deployed if each.acts for target in (*each.targets.destinations, *each.targets.callers)
    )
    return any(_is_all_of(target, namespace, authority) for target in (*targets, *unread))


def _is_all_of(target: Target, namespace: str, authority: Authority) -> bool:
    match target:
        case Everything(where):
            return where in (None, namespace)
        case PodsMatching(where, selector):
            return where == namespace and selector == Selector()
        case PodsAcross(namespaces, pods):
            return pods == Selector() and namespaces.matches(authority.world.namespace(namespace).labels)
    return False


def is_whole(sources: Sources, authority: Authority) -> bool:
    """Return whether everything was read: otherwise a missing object may be in a part that was left out."""
    lost = [each.part for each in authority.unread_objects.objects if each.part is not None and not each.hosts]
    lost += [each for environment in sources.found for each in environment.left_out]
    return not any(part.can_decide for part in lost)


def print_unconsidered(unconsidered: Unconsidered, handling: Handling) -> None:
    """Print the objects that were not considered."""
    print_notes(describe_unconsidered(unconsidered, handling))


def print_left_out(objects: Iterable[Unread], *, err: bool = False) -> bool:
    """Print the parts that could not be read. Return whether one of them may decide something."""
    left_out = [unread for unread in objects if unread.part is not None and not unread.hosts]
    print_notes(list_left_out(left_out), err=err)
    return any(unread.part is not None and unread.part.can_decide for unread in left_out)


def print_notes(lines: Iterable[str], *, err: bool = False) -> None:
    """Print lines about objects that were not considered."""
    for line in lines:
        print_lines(printable(line), err=err)
