"""The observable state of a control plane, to compare one that followed changes with a new one."""

from __future__ import annotations

import json
from collections.abc import Iterator

from eastgate.authority.authority import Authority
from eastgate.authority.questions import Question, QuestionError
from eastgate.control.enforcement import Enforcement


def seen(authority: Authority, enforcement: Enforcement, port: int) -> Iterator[object]:
    """Yield documents, warnings, verdicts at a port of each workload, resources of proxies and closed ports."""
    for policy in authority.policies:
        document = authority.document_of(policy.ref)
        assert document is not None
        yield str(policy.ref), type(policy), str(policy.span), str(document.span)
    yield sorted(f"{warning.code.id} {warning.message} {warning.span}" for warning in authority.warnings)
    yield sorted(f"{unread} {unread.span}" for unread in authority.unread_objects.objects)
    for key in sorted(authority.world.workloads):
        for source in ("sa:shop/web", "sa:shop/cart", "pod:shop/web", "anonymous"):
            yield key, source, verdict_of(authority, Question.of(source, f"pod:{key}", port=port))
    store = enforcement.store
    for node in filter(enforcement.serves, sorted(store.nodes())):
        yield node, {each.key: (each.version, each.policies) for each in store.resources(node)}
    yield {at: closure for at, closure in enforcement.closed.items() if enforcement.serves(at[0])}


def verdict_of(authority: Authority, question: Question) -> str:
    """Return a verdict with its reasons, or the reason for an error."""
    try:
        decision = authority.decide(question)
    except QuestionError as error:
        return error.diagnostic.message
    told = decision.to_json()
    return json.dumps({key: told[key] for key in told if key != "trace"}, default=str)  # it contains the time
