"""Leaves out parts that cannot be read, so that the rest of the manifests has answers.

An object with errors, a file with bad syntax, a chart: each becomes an unread object, about everything that it may
affect. An answer that it could change tells so. A policy with errors is not left out: it closes its targets, even if
only its head can be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eastgate import dialects
from eastgate.authority.faults import Fault, FaultReason, has_no_namespace, ref_of_document
from eastgate.authority.reading import Manifests
from eastgate.basics.diagnostics import Diagnostic, Reporter
from eastgate.cluster import (
    CONTROLLER_KINDS,
    Everything,
    GatewayNamed,
    PodNamed,
    PodsOfService,
    PodsOwnedBy,
    RouteNamed,
    Target,
    dns_label_problem,
)
from eastgate.cluster.unread import lost_part, parts_of
from eastgate.cluster.unread.left_out import diagnose_left_out
from eastgate.reading.manifests import Document, codes
from eastgate.reading.repository import LeftOut

_INPUT_ERRORS = frozenset({codes.BAD_PATTERN, codes.EMPTY_FOLDER, codes.EMPTY_INPUT, codes.KUSTOMIZATION_NAMED})
"""Errors in the user's request (a pattern, an empty folder), not in the files."""


def leave_out(manifests: Manifests) -> None:
    """Leave out parts that cannot be read. If nothing else remains, or an option is wrong, the errors stay.

    Afterwards `Manifests.unattributed_errors` has the errors that stop every answer.
    """
    if not _has_something(manifests):
        parts = [part for part in manifests.unbuilt if part.can_decide]
        manifests.reporter.diagnostics.extend(diagnose_left_out(parts) if not manifests.reporter.errors else ())
        return
    refused = {id(error) for error in manifests.refused}
    if any(id(error) in refused or error.code in _INPUT_ERRORS for error in manifests.unattributed_errors):
        return
    for document, error in manifests.head_only:
        manifests.faults.append(Fault.of_head(document, manifests.settings, [error]))
    for document, error in manifests.twice:
        _close_both(manifests, document, error)
    manifests.head_only, manifests.twice = [], []
    for fault in manifests.faults:
        if fault.reason is FaultReason.TWICE and fault.targets is None:
            _close_only_itself(manifests, fault)
        elif _is_left_out(fault):
            _leave_out_object(manifests, fault)
    _leave_out_rest(manifests)
    lost = parts_of(unread for unread in manifests.unread.objects if not unread.hosts)
    manifests.unbuilt = list(dict.fromkeys([*manifests.unbuilt, *lost]))


def _has_something(manifests: Manifests) -> bool:
    is_read = any(unread.part is None and unread.kind.is_deployed for unread in manifests.unread.objects)
    return bool(manifests.objects or manifests.policies or manifests.closing or manifests.unused or is_read)


# Objects


def _is_left_out(fault: Fault) -> bool:
    """Return whether an object with errors is left out. Otherwise it closes the objects that it may affect."""
    if fault.reason is FaultReason.OBJECT:
        return True
    if not fault.is_unfilled or fault.reason is FaultReason.TWICE:
        return False
    return fault.reason is FaultReason.ROUTE or has_no_namespace(fault.document)


def _leave_out_object(manifests: Manifests, fault: Fault) -> None:
    manifests.unread.objects.append(fault.left_out())
    fault.reason = FaultReason.LEFT_OUT


# Objects that are written twice


def _close_both(manifests: Manifests, document: Document, error: Diagnostic) -> None:
    """Close the targets of two different policies of one name. Leave out an object that may install a mesh."""
    if not dialects.is_policy(document):
        return
    ref = ref_of_document(document)
    first = next((policy for policy in manifests.policies if policy.ref == ref), None)
    if first is not None:
        manifests.reject(first, error)
    fault = next((fault for fault in manifests.faults if ref_of_document(fault.document) == ref and fault.closes), None)
    if fault is None:
        return
    if error not in fault.errors:
        fault.errors.append(error)
    reporter = Reporter()
    dialects.read_policy(document, manifests.settings, reporter)
    copies = ((fault.document, [each for each in fault.errors if each is not error]), (document, reporter.errors))
    targets = (dialects.reject(copy, errors, manifests.settings).targets for copy, errors in copies)
    fault.targets = tuple(dict.fromkeys([*(fault.targets or ()), *(target for some in targets for target in some)]))


def _close_only_itself(manifests: Manifests, fault: Fault) -> None:
    """Close only the object that is written twice. Answers about other objects that it may affect name it as unread."""
    document = fault.document
    closed = _as_target(document)
    if closed is None:
        _leave_out_object(manifests, fault)
        return
    manifests.unread.objects.append(fault.left_out())
    fault.targets = (closed,)


def _as_target(document: Document) -> Target | None:
    """Return an object as a target; None if it is not one, or if its name is invalid."""
    namespace, name = document.home, document.name
    if dns_label_problem(namespace) is not None:
        return None
    match document.group, document.kind:
        case "", "Pod":
            return PodNamed(namespace, name)
        case "", "Service":
            return PodsOfService(namespace, name)
        case "", "Namespace":
            return Everything(name)
        case "gateway.networking.k8s.io", "Gateway":
            return GatewayNamed(namespace, name)
        case _ if dialects.is_route(document):
            return RouteNamed(namespace, name, document.kind)
        case group, kind if CONTROLLER_KINDS.get(kind) == group:
            return PodsOwnedBy(namespace, kind, name)
    return None


# Everything else


def _leave_out_rest(manifests: Manifests) -> None:
    """Leave out errors that belong to no object: a text that cannot be read, or a whole part."""
    unattributed = manifests.unattributed_errors
    by_file: dict[str, list[Diagnostic]] = {}
    for error in unattributed:
        by_file.setdefault(error.span.file if error.span is not None else f" {id(error)}", []).append(error)
    for errors in by_file.values():
        manifests.unread.objects.append(lost_part(part_of(errors), errors[0].span, text=_text(errors)))
        manifests.left_out_errors.update(map(id, errors))


def part_of(errors: Sequence[Diagnostic]) -> LeftOut:
    """Return the part that errors are about: a text, or a part known only by its error."""
    error = errors[0]
    more = f" and {len(errors) - 1} more errors" if len(errors) > 1 else ""
    if error.span is None:
        reason = error.code.title if error.about is not None else ""
        return LeftOut(error.about or error.code.title, "", f"{error.message}{more}", reason=reason)
    return LeftOut("a document", error.span.location, f"{error.message}{more}")


def _text(errors: Iterable[Diagnostic]) -> str | None:
    return next((error.span.source.text for error in errors if error.span is not None), None)
