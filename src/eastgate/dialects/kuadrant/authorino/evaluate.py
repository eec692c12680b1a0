"""Evaluates a scheme on a request.

    when            whether the scheme applies to this request
    identity        ANY identity recognizes the caller, in the order of their priorities
    metadata        each source is asked; one that fails is left out
    authorization   ALL allow, in the order of their priorities; the first that does not allow decides
    response        each is created; one that fails is left out
    callbacks       each is sent afterwards, with any answer; their results change nothing

The answer is allow only if it would be allow for every value of the unknown attributes. If the condition of a step is
unknown, the step may take place or not: such an identity recognizes no caller, such an authorization must allow anyway,
and the result of such a step is unknown to later steps.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

from eastgate.basics.diagnostics.spans import Span
from eastgate.dialects.kuadrant.authorino.authorization import authorize
from eastgate.dialects.kuadrant.authorino.authorization_json import AuthorizationJson, authorization_json_of
from eastgate.dialects.kuadrant.authorino.callbacks import make_callbacks
from eastgate.dialects.kuadrant.authorino.conditions import Gate, Guarded, gate_of
from eastgate.dialects.kuadrant.authorino.context import Evaluation
from eastgate.dialects.kuadrant.authorino.credentials import all_credentials
from eastgate.dialects.kuadrant.authorino.facts import RequestFacts, Services
from eastgate.dialects.kuadrant.authorino.identity import recognize
from eastgate.dialects.kuadrant.authorino.metadata import fetch_metadata
from eastgate.dialects.kuadrant.authorino.model import Credentials, Denial, Response, Scheme
from eastgate.dialects.kuadrant.authorino.outcomes import (
    DECISIVE,
    Broken,
    Finding,
    Found,
    Judgement,
    NotKnown,
    Refused,
    StepKind,
)
from eastgate.dialects.kuadrant.authorino.responses import build_response, challenges, customize_denial
from eastgate.dialects.kuadrant.authorino.secrecy import Secrets
from eastgate.dialects.kuadrant.authorino.values import stringified
from eastgate.ir import RulingStep, Seen, StepVerdict
from eastgate.ir.attributes import UNKNOWN

# Describes an evaluation: its steps and the document, without secrets.


def mask_steps(steps: Iterable[RulingStep], secrets: Secrets) -> tuple[RulingStep, ...]:
    """Return the steps without secrets."""
    return tuple(
        replace(
            step, reason=secrets.mask_text(step.reason), seen=tuple(_mask_seen(seen, secrets) for seen in step.seen)
        )
        for step in steps
    )


def _mask_seen(seen: Seen, secrets: Secrets) -> Seen:
    return replace(
        seen,
        expression=secrets.mask_text(seen.expression),
        saw=None if seen.saw is None else secrets.mask_text(seen.saw),
        reason=secrets.mask_text(seen.reason),
    )


def mask_document(document: AuthorizationJson, secrets: Secrets) -> dict[str, object]:
    """Return the document without secrets, and without unknown values."""
    shown = secrets.mask_explanation(document.masked)
    if not isinstance(shown, dict):
        return {}
    for path in document.unknown:
        parent: object = shown
        for key in path[:-1]:
            parent = parent.get(key) if isinstance(parent, dict) else None
        if isinstance(parent, dict):
            parent.pop(path[-1], None)
    return shown


def evaluate(scheme: Scheme, request: RequestFacts, services: Services, *, explain: bool = True) -> Judgement:
    """Evaluate a scheme on a request. Never raises for any content of the request, and never allows by an error.

    Without `explain` there is no document, and only the steps that decided or depended on an unknown value.
    """
    locations = _locations(scheme)
    secrets = Secrets(lambda: all_credentials(locations, request))
    document = authorization_json_of(request, locations)
    return _Run(Evaluation(scheme, request, services, document, secrets), explain=explain).judgement()


@lru_cache(maxsize=1024)
def _locations(scheme: Scheme) -> tuple[Credentials, ...]:
    return tuple(dict.fromkeys(identity.credentials for identity in scheme.identities))


T = TypeVar("T", bound=Guarded)


class _Denied(Exception):  # noqa: N818 - carries the answer out of the steps
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


UNAUTHORIZED = "Unauthorized"

_NOT_KNOWN = (StepVerdict.UNKNOWN, "Whether the scheme concerns this request is not known.")
_CONCERNED = {
    Gate.OPEN: (StepVerdict.ACCEPTED, "The scheme concerns this request."),
    Gate.CLOSED: (StepVerdict.SKIPPED, "The scheme does not concern this request."),
    Gate.MAYBE: _NOT_KNOWN,
    Gate.UNSURE: _NOT_KNOWN,
    Gate.ERROR: (StepVerdict.ERROR, "Whether the scheme concerns this request cannot be evaluated."),
}


class _Run:
    """The steps of one evaluation, in order."""

    def __init__(self, evaluation: Evaluation, *, explain: bool) -> None:
        self._evaluation = evaluation
        self._explain = explain
        self._document = evaluation.document
        self._scheme = evaluation.scheme
        self._steps: list[RulingStep] = []
        self._headers: dict[str, str] = {}
        self._passed_on: set[str] = set()
        self._metadata: dict[str, object] = {}
        self._is_concerned = False

    def judgement(self) -> Judgement:
        try:
            if self._applies():
                self._identity()
                self._fetch_metadata()
                self._authorization()
                self._responses()
        except _Denied as denied:
            return self._with_callbacks(self._denied(denied))
        return self._with_callbacks(self._allowed())

    def _allowed(self) -> Judgement:
        recognized = self._evaluation.recognized.identity
        return Judgement(
            True,
            200,
            steps=self._explained(),
            document=self._shown(),
            response_headers=self._headers,
            passed_on=frozenset(self._passed_on),
            dynamic_metadata=self._metadata,
            recognized_by=recognized.name if recognized is not None else None,
        )

    def _with_callbacks(self, judgement: Judgement) -> Judgement:
        """Return the judgement with the callbacks to send. A skipped scheme sends none."""
        background = self._evaluation.services.background
        if background is None or not self._scheme.callbacks or not self._is_concerned:
            return judgement
        evaluation = self._evaluation
        return replace(judgement, follow_up=lambda: background.submit(lambda: make_callbacks(evaluation, background)))

    # When

    def _applies(self) -> bool:
        gate, result = gate_of(self._scheme.when, self._evaluation)
        self._is_concerned = gate in (Gate.OPEN, Gate.MAYBE)
        if result is None:
            return True
        verdict, reason = _CONCERNED[gate]
        self._step(StepKind.WHEN, "when", verdict, f"{reason} {result.reason}", result.seen, self._scheme.span)
        if gate in (Gate.ERROR, Gate.UNSURE):
            raise _Denied(403, UNAUTHORIZED)
        return gate is not Gate.CLOSED

    def _guarded(self, kind: StepKind, each: Guarded, status: int) -> tuple[Gate, tuple[Seen, ...]]:
        """Return the gate of a step: open, closed (and recorded) or maybe. Any other result denies."""
        gate, result = gate_of(each.when, self._evaluation)
        if result is None:
            return gate, ()
        if gate is Gate.CLOSED:
            self._step(
                kind,
                each.name,
                StepVerdict.SKIPPED,
                f"Its condition does not hold. {result.reason}",
                result.seen,
                each.span,
            )
        elif gate is Gate.ERROR:
            self._step(
                kind, each.name, StepVerdict.ERROR, f"Its condition errs. {result.reason}", result.seen, each.span
            )
            raise _Denied(status, UNAUTHORIZED)
        elif gate is Gate.UNSURE:
            reason = f"Whether its condition holds is not known. {result.reason}"
            self._step(kind, each.name, StepVerdict.UNKNOWN, reason, result.seen, each.span)
            raise _Denied(status, UNAUTHORIZED)
        return gate, result.seen

    # Identity: ANY

    def _identity(self) -> None:
        if not self._scheme.identities:
            self._document.add_finding("identity", None, {"anonymous": True}, {"anonymous": True})
            self._step(StepKind.IDENTITY, "anonymous", StepVerdict.ACCEPTED, "The scheme asks for no identity.")
            return
        problems: dict[str, str] = {}
        doubt = ""
        for identity in _by_priority(self._scheme.identities):
            gate, seen = self._guarded(StepKind.IDENTITY, identity, 401)
            if gate is Gate.CLOSED:
                continue
            finding = recognize(identity, self._evaluation)
            if isinstance(finding, Found) and gate is Gate.MAYBE:
                finding = NotKnown("whether its condition holds")
            self._record_step(StepKind.IDENTITY, identity, finding, seen)
            match finding:
                case Found():
                    self._evaluation.recognized.identity = identity
                    if doubt:
                        self._document.add_unknown("identity", None, f"the identity of the caller ({doubt})")
                    return
                case NotKnown(what):
                    doubt = doubt or what
                case Refused(reason) | Broken(reason):
                    problems[identity.name] = reason
        self._document.add_unknown("identity", None, "the identity of the caller")
        raise _Denied(401, self._unrecognized(problems))

    def _unrecognized(self, problems: dict[str, str]) -> str:
        if len(self._scheme.identities) == 1 and problems:
            return next(iter(problems.values()))
        return json.dumps(problems, separators=(",", ":"))

    # Metadata: each

    def _fetch_metadata(self) -> None:
        for metadata in _by_priority(self._scheme.metadata):
            gate, seen = self._guarded(StepKind.METADATA, metadata, 403)
            if gate is Gate.CLOSED:
                continue
            finding = fetch_metadata(metadata, self._evaluation)
            self._record_step(StepKind.METADATA, metadata, finding, seen)
            self._add_finding("metadata", metadata.name, finding, gate)

    # Authorization: ALL

    def _authorization(self) -> None:
        for authorization in _by_priority(self._scheme.authorizations):
            gate, seen = self._guarded(StepKind.AUTHORIZATION, authorization, 403)
            if gate is Gate.CLOSED:
                continue
            finding, looked_at = authorize(authorization, self._evaluation)
            self._record_step(StepKind.AUTHORIZATION, authorization, finding, (*seen, *looked_at))
            if not isinstance(finding, Found):
                for_client = isinstance(finding, Refused) and finding.for_client
                raise _Denied(403, finding.reason if for_client else UNAUTHORIZED)
            self._add_finding("authorization", authorization.name, finding, gate)

    # Response: each

    def _responses(self) -> None:
        for response in _by_priority(self._scheme.responses):
            gate, seen = self._guarded(StepKind.RESPONSE, response, 403)
            if gate is Gate.CLOSED:
                continue
            finding = build_response(response, self._evaluation)
            if isinstance(finding, Found) and gate is Gate.MAYBE:
                finding = NotKnown("whether its condition holds")
            self._record_step(StepKind.RESPONSE, response, finding, seen)
            self._add_finding("response", response.name, finding, gate)
            if isinstance(finding, Found):
                self._add_response(response, finding)

    def _add_response(self, response: Response, finding: Found) -> None:
        if not response.in_header:
            self._metadata[response.key] = finding.masked
        elif self._is_passed_on(response.key.lower(), finding):
            self._passed_on.add(response.key.lower())
        else:
            self._headers[response.key] = stringified(finding.masked)

    def _is_passed_on(self, name: str, finding: Found) -> bool:
        """Return whether a response has the same value as the client's header with that name."""
        headers = self._evaluation.request.headers
        if headers is UNKNOWN or finding.masked == finding.value:
            return False
        return stringified(finding.value) == headers.get(name)

    # Common to all steps

    def _add_finding(self, part: str, name: str, finding: Finding, gate: Gate) -> None:
        if isinstance(finding, Found):
            self._document.add_finding(part, name, finding.value, finding.masked)
        if isinstance(finding, NotKnown) or gate is Gate.MAYBE:
            self._document.add_unknown(part, name, f"the result of {name}")

    def _record_step(self, kind: StepKind, each: Guarded, finding: Finding, seen: tuple[Seen, ...]) -> None:
        match finding:
            case Found():
                verdict = StepVerdict.ACCEPTED
            case Refused():
                verdict = StepVerdict.REFUSED
            case NotKnown():
                verdict = StepVerdict.UNKNOWN
            case Broken():
                verdict = StepVerdict.ERROR
        self._step(kind, each.name, verdict, finding.reason, seen, each.span)

    def _step(
        self,
        kind: StepKind,
        name: str,
        verdict: StepVerdict,
        reason: str,
        seen: tuple[Seen, ...] = (),
        span: Span | None = None,
    ) -> None:
        if self._explain or verdict in DECISIVE:
            self._steps.append(RulingStep(kind, name, verdict, reason.strip(), seen, span))

    def _denied(self, denied: _Denied) -> Judgement:
        custom: Denial = self._scheme.unauthenticated if denied.status == 401 else self._scheme.unauthorized
        headers = challenges(self._scheme.identities) if denied.status == 401 else []
        status, message, sent, body = customize_denial(custom, denied.status, denied.message, headers, self._evaluation)
        return Judgement(False, status, message, sent, body, self._explained(), self._shown())

    def _explained(self) -> tuple[RulingStep, ...]:
        return mask_steps(self._steps, self._evaluation.secrets) if self._steps else ()

    def _shown(self) -> dict[str, object]:
        return mask_document(self._document, self._evaluation.secrets) if self._explain else {}


def _by_priority(listed: tuple[T, ...]) -> Sequence[T]:
    """Sort steps: lower numbers first; at equal priority in the order of the manifest."""
    return sorted(listed, key=lambda each: each.priority) if len(listed) > 1 else listed
