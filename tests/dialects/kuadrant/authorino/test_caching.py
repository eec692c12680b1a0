"""Good answers are cached for as long as the scheme says, for the same key, up to a limit."""

from __future__ import annotations

from collections.abc import Mapping

from eastgate.dialects.kuadrant.authorino.calls import AnswerCache, HttpFetcher
from eastgate.dialects.kuadrant.authorino.evaluate import evaluate
from eastgate.dialects.kuadrant.authorino.facts import RequestFacts, Review, Services
from eastgate.dialects.kuadrant.authorino.model import (
    Authorization,
    Cache,
    HttpCall,
    Identity,
    Introspection,
    LiteralValue,
    Metadata,
    Scheme,
    Selected,
    SubjectAccess,
    TokenReview,
)
from eastgate.dialects.kuadrant.authorino.outcomes import Judgement
from tests.dialects.kuadrant.authorino.schemes import Reply, backend, request, scheme
from tests.reading.jwt.mint import NOW


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Server:
    def __init__(self) -> None:
        self.asked = 0
        self.grants = True

    def token(self, token: str, audiences: tuple[str, ...]) -> Review:  # noqa: ARG002
        self.asked += 1
        return Review(self.grants, status={"user": {"username": token[-5:]}})

    def access(self, spec: Mapping[str, object]) -> Review:  # noqa: ARG002
        self.asked += 1
        return Review(self.grants)


def facts(user: str, **headers: str) -> RequestFacts:
    return request(headers={"authorization": f"Bearer token-of-{user}", "x-user": user, **headers})


BY_USER = Cache(Selected("request.headers.x-user"), 60)


def guarded(cache: Cache = BY_USER) -> Scheme:
    return scheme(identities=[Identity("kube", TokenReview(("a",)), cache=cache)])


def asked(found: Scheme, user: str, services: Services) -> Judgement:
    return evaluate(found, facts(user), services)


def test_a_good_answer_is_used_again_until_it_is_too_old() -> None:
    clock, server = Clock(), Server()
    services, found = Services(reviewer=server, cache=AnswerCache(clock=clock)), guarded()
    for now, calls in ((100, 1), (159.9, 1), (160, 2), (161, 2)):
        clock.now = now
        answer = asked(found, "alice", services)
        assert (answer.allowed, server.asked) == (True, calls)
        assert answer.document["auth"]["identity"] == {"user": {"username": "alice"}}  # type: ignore[index]


def test_each_key_and_each_scheme_has_answers_of_its_own() -> None:
    server = Server()
    services, found = Services(reviewer=server, cache=AnswerCache()), guarded()
    for user in ("alice", "bobby", "alice", "bobby"):
        assert asked(found, user, services).document["auth"]["identity"]["user"]["username"] == user  # type: ignore[index]
    assert server.asked == 2
    asked(guarded(), "alice", services)
    assert server.asked == 3


def test_a_bad_answer_is_never_kept() -> None:
    server = Server()
    services, found = Services(reviewer=server, cache=AnswerCache()), guarded()
    server.grants = False
    assert not asked(found, "alice", services).allowed
    server.grants = True
    assert asked(found, "alice", services).allowed


def test_without_a_key_nothing_is_kept() -> None:
    server = Server()
    services = Services(reviewer=server, cache=AnswerCache())
    found = guarded(Cache(Selected("request.headers.nope")))
    assert asked(found, "alice", services).allowed
    assert asked(found, "alice", services).allowed
    assert server.asked == 2


def test_there_are_never_too_many() -> None:
    cache = AnswerCache(size=3)
    services, found = Services(reviewer=Server(), cache=cache), guarded()
    for number in range(20):
        asked(found, f"user{number}", services)
    assert len(cache) == 3


def test_an_answer_about_a_token_does_not_outlive_the_token() -> None:
    with backend() as server:
        server.replies["/i"] = Reply({"active": True, "exp": NOW + 1})
        clock = Clock()
        services = Services(fetcher=HttpFetcher(), cache=AnswerCache(clock=clock), leeway=0)
        found = scheme(identities=[Identity("oauth2", Introspection(f"{server.url}/i"), cache=BY_USER)])
        for now, calls in ((100, 1), (100.5, 1), (101, 2)):
            clock.now = now
            assert asked(found, "alice", services).allowed
            assert len(server.asked) == calls


def test_metadata_and_authorization_are_kept_as_well() -> None:
    reviewer = Server()
    with backend() as server:
        server.replies["/more"] = Reply({"plan": "gold"})
        found = scheme(
            Authorization("sar", SubjectAccess(LiteralValue("alice")), cache=BY_USER),
            metadata=(Metadata("more", HttpCall(f"{server.url}/more"), cache=BY_USER),),
        )
        services = Services(reviewer=reviewer, fetcher=HttpFetcher(), cache=AnswerCache())
        for _ in range(3):
            assert asked(found, "alice", services).allowed
        assert (len(server.asked), reviewer.asked) == (1, 1)
