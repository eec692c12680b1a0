"""What a network policy with errors elsewhere is about, so that it closes that and no more."""

from __future__ import annotations

from eastgate.cluster import Everything, PodsAcross, PodsMatching, Target
from eastgate.cluster.unread.locating import content_of, selector_in
from eastgate.ir.labels import Selector
from eastgate.reading.manifests import Document


def locate_pods(document: Document) -> tuple[Target, ...]:
    """Return the pods that a NetworkPolicy selects; all of its namespace where that cannot be read."""
    selector = selector_in(content_of(document), "podSelector")
    return (PodsMatching(document.home, selector) if selector is not None else Everything(document.home),)


def locate_subject(document: Document) -> tuple[Target, ...]:
    """Return the pods that a cluster-wide policy is for; everything where that cannot be read."""
    subject = content_of(document).get("subject")
    if isinstance(subject, dict) and len(subject) == 1:
        if isinstance(subject.get("namespaces"), dict):
            namespaces = selector_in(subject, "namespaces")
            return (Everything(None) if namespaces is None else PodsAcross(namespaces, Selector.of()),)
        pods = subject.get("pods")
        if isinstance(pods, dict) and not pods.keys() - {"namespaceSelector", "podSelector"}:
            namespaces, labels = selector_in(pods, "namespaceSelector"), selector_in(pods, "podSelector")
            if namespaces is not None and labels is not None:
                return (PodsAcross(namespaces, labels),)
    return (Everything(None),)
