"""The toy store with a real issuer of tokens: allowed callers, and the effect of new and removed keys."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from eastgate import Question, load
from eastgate.authority.authority import Authority
from eastgate.ir import Ruling
from eastgate.reading.jwt import DiscoveredKeys
from tests.programs.oidc_issuer import DISCOVERY, KEYS, OidcIssuer

pytestmark = pytest.mark.real

TOYSTORE = Path(__file__).parents[3] / "examples" / "toystore" / "manifests"
ISSUER = "https://staff.toystore.example/realms/toystore"
STAFF = {"sub": "erin", "aud": "toystore-admin", "group": "allowed-users"}


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Store:
    """The toy store, whose staff have tokens of a running issuer."""

    def __init__(self, folder: Path, issuer: OidcIssuer) -> None:
        shutil.copytree(TOYSTORE, folder)
        for path in folder.iterdir():
            path.write_text(path.read_text().replace(ISSUER, issuer.url))
        self.issuer = issuer
        self.clock = Clock()
        keys = DiscoveredKeys(fresh_for=100, usable_for=300, min_interval=10, clock=self.clock)
        self.authority: Authority = load(folder, keys=keys, live=True)

    def get(
        self, path: str, authorization: str | None = None, host: str = "admin", method: str = "GET"
    ) -> Ruling | int:
        """Return the ruling of the authorizer on a request, or the status if none is asked."""
        headers = {"authorization": authorization} if authorization is not None else {}
        name = f"{host}.toystore.com"
        asked = Question.of(
            "ip:203.0.113.9",
            "gateway:gateways/edge",
            port=None,
            method=method,
            path=path,
            host=name,
            headers=headers,
            sni=name,
        )
        decision = self.authority.decide(asked)
        rule = decision.outcome.rule
        ruling = decision.arrival.request.answers.get(str(rule.origin)) if rule is not None else None
        return ruling if isinstance(ruling, Ruling) else decision.status

    def staff(self, token: str) -> int:
        ruling = self.get("/admin", f"Bearer {token}")
        return ruling.status if isinstance(ruling, Ruling) else ruling


@pytest.fixture
def issuer(tmp_path: Path) -> Iterator[OidcIssuer]:
    with OidcIssuer(tmp_path) as running:
        yield running


@pytest.fixture
def store(issuer: OidcIssuer, tmp_path: Path) -> Store:
    return Store(tmp_path / "manifests", issuer)


def test_200_401_403_and_404(store: Store, issuer: OidcIssuer) -> None:
    assert store.staff(issuer.token(**STAFF)) == 200
    assert store.staff(issuer.token(**STAFF, lifetime=-60)) == 401
    assert store.staff(issuer.token(**{**STAFF, "aud": "payroll"})) == 401
    assert store.staff(issuer.token(**STAFF)[:-4] + "AAAA") == 401
    assert store.staff("none") == 401
    assert store.staff(issuer.token(**{**STAFF, "group": "visitors"})) == 403
    assert store.get("/admin", host="shop") == 404
    assert store.get("/toys", host="www") == 200


def test_the_keys_are_fetched_once_for_many_tokens(store: Store, issuer: OidcIssuer) -> None:
    for number in range(5):
        assert store.staff(issuer.token(**STAFF, jti=number)) == 200
    asked = issuer.asked
    assert (asked[DISCOVERY], asked[KEYS]) == (1, 1)


def test_a_token_of_a_new_key_is_good_as_soon_as_the_issuer_may_be_asked_again(
    store: Store, issuer: OidcIssuer
) -> None:
    old = issuer.token(**STAFF)
    assert store.staff(old) == 200
    issuer.rotate()
    new = issuer.token(**STAFF)
    assert store.staff(new) == 401
    store.clock.now += 10
    assert [store.staff(new), store.staff(old)] == [200, 200]
    assert issuer.asked[KEYS] == 2


def test_a_token_of_a_withdrawn_key_is_valid_until_the_cached_keys_expire(store: Store, issuer: OidcIssuer) -> None:
    old = issuer.token(**STAFF)
    assert store.staff(old) == 200
    issuer.rotate()
    issuer.withdraw("key-1")
    store.clock.now += 99
    assert store.staff(old) == 200
    store.clock.now += 1
    assert [store.staff(old), store.staff(issuer.token(**STAFF, kid="key-1"))] == [401, 401]
    assert store.staff(issuer.token(**STAFF)) == 200


def test_an_issuer_that_is_down_is_outlived_for_a_while(store: Store, issuer: OidcIssuer) -> None:
    token = issuer.token(**STAFF)
    assert store.staff(token) == 200
    issuer.answer(503)
    store.clock.now += 299
    assert store.staff(token) == 200
    store.clock.now += 1
    assert store.staff(token) == 401
    issuer.answer(200)
    store.clock.now += 10
    assert store.staff(token) == 200


def test_an_issuer_without_keys_is_believed(store: Store, issuer: OidcIssuer) -> None:
    token = issuer.token(**STAFF)
    assert store.staff(token) == 200
    issuer.withdraw()
    store.clock.now += 100
    assert store.staff(token) == 401


def test_a_denied_client_only_learns_how_to_authenticate(store: Store) -> None:
    ruling = store.get("/admin")
    assert isinstance(ruling, Ruling)
    assert dict(ruling.headers) == {
        "WWW-Authenticate": 'Bearer realm="idp-users"',
        "X-Ext-Auth-Reason": "There is no credential in the Authorization header after 'Bearer'.",
    }


def test_the_response_of_a_scheme_replaces_the_headers_of_the_client(store: Store) -> None:
    ruling = store.get("/v1/toys", "APIKEY EXAMPLE-KEY-PAPER-KITES", host="api")
    assert isinstance(ruling, Ruling)
    assert (ruling.allowed, ruling.headers, ruling.removed) == (
        True,
        (("x-partner", "paper-kites"),),
        ("authorization",),
    )


def test_denials_as_the_scheme_wants_them(store: Store) -> None:
    unpaid = store.get("/v1/toys", "APIKEY EXAMPLE-KEY-PAPER-KITES", host="api", method="POST")
    assert isinstance(unpaid, Ruling)
    assert (unpaid.status, dict(unpaid.headers)) == (402, {"X-Ext-Auth-Reason": "this needs the gold plan"})
    elsewhere = store.get("/admin", host="www")
    assert isinstance(elsewhere, Ruling)
    assert (elsewhere.status, dict(elsewhere.headers)["Location"]) == (302, "https://admin.toystore.com/admin")


def test_api_keys_follow_their_secrets(store: Store) -> None:
    def status(key: str) -> int:
        ruling = store.get("/v1/toys", f"APIKEY {key}", host="api")
        return ruling.status if isinstance(ruling, Ruling) else ruling

    def secret(key: str, label: str = "partners") -> dict[str, object]:
        metadata = {"name": "new", "namespace": "toystore", "labels": {"toystore.com/keys": label}}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"api_key": key}}

    assert status("FIRST") == 401
    store.authority.update(put=[secret("FIRST")])
    assert status("FIRST") == 200
    store.authority.update(put=[secret("SECOND")])
    assert [status("FIRST"), status("SECOND")] == [401, 200]
    store.authority.update(put=[secret("SECOND", "warehouse")])
    assert status("SECOND") == 401
    store.authority.update(put=[secret("SECOND")])
    store.authority.update(remove=["Secret/toystore/new"])
    assert status("SECOND") == 401
