"""The reasons why a question cannot be decided."""

from __future__ import annotations

from collections.abc import Sequence

from eastgate.basics.diagnostics import Code, Diagnostic

BAD_SOURCE = Code(
    "EG0101",
    "source not understood",
    "A source is sa:, pod:, deployment:, statefulset:, daemonset:, spiffe://, id:, ip: or anonymous.",
)
BAD_DESTINATION = Code(
    "EG0102",
    "destination not understood",
    "A destination is pod:, deployment:, statefulset:, daemonset:, service:, gateway:, route:, backend:, authconfig:, "
    "host: or ip:.",
)
NOT_DECLARED = Code(
    "EG0103",
    "not declared",
    "The ends of a question must be in the manifests: only then are the policies about them known.",
)
NOTHING_BEHIND = Code(
    "EG0104",
    "nothing behind the Service",
    "A Service without pods, or without that port, leads nowhere, so that no policy decides.",
)
BAD_ATTRIBUTE = Code(
    "EG0105", "attribute not understood", "An attribute of the question has a value that no request can have."
)
POLICY_REJECTED = Code(
    "EG0120",
    "a policy that targets it cannot be read",
    "The rules of a policy with errors are unknown, so that Eastgate cannot decide about its targets. It answers "
    "questions about everything else; with `--strict` it answers none.",
)
LABELS_UNKNOWN = Code(
    "EG0122",
    "a policy selects by a label that a cluster adds",
    "Controllers and injectors add labels to pods (`pod-template-hash`, `job-name`, `linkerd.io/control-plane-ns` and "
    "others), which are not in templates. If a policy selects by such a label, its effect on the pods of a template is "
    "unknown; give real Pods (`kubectl get pods -o yaml`), or select by labels of the template.",
)
NOT_CONSIDERED = Code(
    "EG0121",
    "unread objects could change the answer",
    "The manifests have objects of kinds that Eastgate does not read, and these objects could change the answer. With "
    "`--unread warn` the answer considers only the objects that were read, and the exit status is 3; with "
    "`--unread ignore` unread objects have no effect.",
)


class QuestionError(ValueError):
    """A question that cannot be decided, and the reason. `diagnostics` includes the policy errors behind it."""

    def __init__(
        self,
        code: Code,
        message: str,
        help: str | None = None,  # noqa: A002
        causes: Sequence[Diagnostic] = (),
    ) -> None:
        super().__init__(message if help is None else f"{message} ({help})")
        self.diagnostic = Diagnostic(code, message, None, help)
        self.diagnostics = [*causes, self.diagnostic]


class UnknownLabelsError(QuestionError):
    """A question about an account of this namespace without a pod in manifests: its pods may have too many labels."""

    def __init__(self, namespace: str, message: str, way_out: str) -> None:
        super().__init__(BAD_SOURCE, message, way_out)
        self.namespace = namespace
