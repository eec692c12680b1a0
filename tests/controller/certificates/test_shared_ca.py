from __future__ import annotations

import asyncio
import base64
import copy
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from eastgate.control.identity import CaState, PeerError, StoredCaError, Svid, SvidsRenewed, TrustBundles, verify_peer
from eastgate.control.identity.ca import Lifetimes
from eastgate.control.identity.issuer import IssuerCa
from eastgate.controller.certificates.ca_secret import Rollover, StoredCa, new_secret, read_secret
from eastgate.controller.certificates.shared_ca import SharedCa, namespaces_with_proxies, trust_config_map
from eastgate.reading.kubernetes import ApiError, JsonObject, Resource
from tests.controller.proxies.pods import authority, gateway

_ID = "spiffe://cluster.local/ns/shop/sa/pay"
_START = datetime(2030, 1, 1, tzinfo=UTC)


class FakeSecrets:
    """The Secrets of an API server, with their versions."""

    def __init__(self) -> None:
        self.stored: dict[str, JsonObject] = {}
        self.version = 0
        self.before_create: list[JsonObject] = []  # an object that another replica creates first

    async def get(self, _resource: Resource, name: str, namespace: str | None = None) -> JsonObject:
        if name not in self.stored:
            raise ApiError(404, "NotFound", f"{namespace}/{name}")
        return copy.deepcopy(self.stored[name])

    async def create(self, _resource: Resource, obj: Mapping[str, Any]) -> JsonObject:
        for faster in self.before_create:
            self._store(faster)
        if obj["metadata"]["name"] in self.stored:
            raise ApiError(409, "AlreadyExists", "")
        return self._store(obj)

    async def replace(self, _resource: Resource, obj: Mapping[str, Any]) -> JsonObject:
        current = self.stored[obj["metadata"]["name"]]
        if obj["metadata"]["resourceVersion"] != current["metadata"]["resourceVersion"]:
            raise ApiError(409, "Conflict", "")
        return self._store(obj)

    def _store(self, obj: Mapping[str, Any]) -> JsonObject:
        self.version += 1
        stored = copy.deepcopy(dict(obj))
        stored["metadata"]["resourceVersion"] = str(self.version)
        self.stored[obj["metadata"]["name"]] = stored
        return copy.deepcopy(stored)


class Clock:
    def __init__(self) -> None:
        self.now = _START

    def __call__(self) -> datetime:
        return self.now


def _open(api: FakeSecrets, clock: Clock, **options: Any) -> SharedCa:
    return asyncio.run(SharedCa.open(api, "cluster.local", clock=clock, **options))


def _verify(svid: Svid, bundles: TrustBundles, at: datetime) -> str:
    chain = [each.public_bytes(Encoding.DER) for each in x509.load_pem_x509_certificates(svid.chain.encode())]
    return verify_peer(chain[0], bundles, intermediates=chain[1:], at=at)


class TestSharing:
    def test_all_replicas_sign_with_the_ca_that_the_first_made(self) -> None:
        api, clock = FakeSecrets(), Clock()
        first, second = _open(api, clock), _open(api, clock)
        assert api.version == 1
        assert first.session_key == second.session_key
        assert _verify(first.source.issue(_ID), second.source.bundles, clock.now) == _ID
        assert _verify(second.source.issue(_ID), first.source.bundles, clock.now) == _ID

    def test_the_slower_of_two_creators_uses_the_ca_of_the_other(self) -> None:
        api, clock = FakeSecrets(), Clock()
        faster = _open(FakeSecrets(), clock)
        api.before_create = [faster._secret]
        ca = _open(api, clock)
        assert ca.source.bundles == faster.source.bundles

    def test_without_create_a_missing_ca_is_an_error(self) -> None:
        with pytest.raises(ApiError):
            _open(FakeSecrets(), Clock(), create=False)

    @pytest.mark.parametrize("part", ["tls.key", "state.json"])
    def test_a_damaged_ca_is_neither_used_nor_replaced(self, part: str) -> None:
        api, clock = FakeSecrets(), Clock()
        running = _open(api, clock)
        before = running.source.bundles
        api.stored["eastgate-ca"]["data"][part] = base64.b64encode(b"nonsense").decode()
        with pytest.raises(StoredCaError) as caught:
            _open(api, clock)
        assert "nonsense" not in str(caught.value)
        asyncio.run(running.refresh())  # keeps its old state
        assert running.source.bundles == before
        assert api.version == 1

    @pytest.mark.parametrize("why", ["another trust domain", "expired"])
    def test_another_ca_that_cannot_be_used_changes_nothing(self, why: str, caplog: pytest.LogCaptureFixture) -> None:
        api, clock = FakeSecrets(), Clock()
        running = _open(api, clock)
        before = running.source.bundles
        domain, began = ("else", clock.now) if why != "expired" else ("cluster.local", clock.now - timedelta(days=3651))
        api._store(new_secret(domain, "eastgate-system", "eastgate-ca", Lifetimes(), began))
        asyncio.run(running.rotate())
        assert running.source.bundles == before
        assert "the CA stays as it was" in caplog.text

    def test_its_secret_has_the_names_that_others_expect(self) -> None:
        api = FakeSecrets()
        ca = _open(api, Clock())
        secret = api.stored["eastgate-ca"]
        assert (secret["metadata"]["namespace"], secret["type"]) == ("eastgate-system", "kubernetes.io/tls")
        roots = base64.b64decode(secret["data"]["ca.crt"]).decode()
        assert roots == ca.source.bundles.pem("cluster.local")
        assert isinstance(read_secret(secret).content, CaState)


class TestReplacingTheRoot:
    def test_every_peer_trusts_every_certificate_at_every_step(self) -> None:
        api, clock = FakeSecrets(), Clock()
        rollover = Rollover(before_end=timedelta(days=3650), spread=timedelta(hours=1))  # due at once
        leader, other = (_open(api, clock, rollover=rollover) for _ in range(2))
        old = other.source.issue(_ID)
        first = leader.source.bundles

        assert asyncio.run(leader.rotate())  # prepared: trusted, but not used for signing
        assert len(leader.source.bundles.of_domain("cluster.local")) == 2
        assert _verify(leader.source.issue(_ID), first, clock.now) == _ID
        assert not asyncio.run(leader.rotate())

        asyncio.run(other.refresh())
        assert other.source.bundles == leader.source.bundles
        clock.now += timedelta(minutes=61)
        changes: list[object] = []
        other.source.watch(changes.append)
        assert asyncio.run(leader.rotate())  # activated
        late = other.source.issue(_ID)  # by a replica that does not know of it yet
        assert _verify(leader.source.issue(_ID), other.source.bundles, clock.now) == _ID
        assert _verify(late, leader.source.bundles, clock.now) == _ID
        with pytest.raises(PeerError):
            _verify(leader.source.issue(_ID), first, clock.now)
        asyncio.run(other.refresh())
        assert SvidsRenewed(None) in changes
        assert _verify(late, other.source.bundles, clock.now) == _ID

        clock.now += timedelta(hours=2, minutes=5)  # all certificates of the old root have expired
        assert late.expired(clock.now)
        assert old.expired(clock.now)
        asyncio.run(leader.rotate())
        asyncio.run(other.refresh())
        assert len(leader.source.bundles.of_domain("cluster.local")) == 1 + 1  # the next is prepared already
        assert not set(first.of_domain("cluster.local")) & set(other.source.bundles.of_domain("cluster.local"))

    def test_two_leaders_make_one_step(self) -> None:
        api, clock = FakeSecrets(), Clock()
        one, two = (_open(api, clock, rollover=Rollover(before_end=timedelta(days=3650))) for _ in range(2))
        get = api.get

        async def get_and_lose(resource: Resource, name: str, namespace: str | None = None) -> JsonObject:
            secret = await get(resource, name, namespace)
            api.get = get  # type: ignore[method-assign]
            assert await two.rotate()
            return secret

        api.get = get_and_lose  # type: ignore[method-assign,assignment]
        assert not asyncio.run(one.rotate())
        asyncio.run(one.refresh())
        assert one.source.bundles == two.source.bundles

    def test_a_root_with_years_to_live_stays(self) -> None:
        api, clock = FakeSecrets(), Clock()
        ca = _open(api, clock)
        clock.now += timedelta(days=3650 - 366)
        assert not asyncio.run(ca.rotate())
        clock.now += timedelta(days=2)
        assert asyncio.run(ca.rotate())


def _issuer(
    key: Any,
    common_name: str,
    clock: Clock,
    ski: bytes | None = None,
    *,
    is_ca: bool = True,
    by: tuple[Any, str] | None = None,
) -> JsonObject:
    """Return a Secret as cert-manager writes it."""
    signing_key, issuer = by or (key, common_name)
    name, issuer_name = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, each)]) for each in (common_name, issuer))
    usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer_name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(clock.now - timedelta(days=1))
        .not_valid_after(clock.now + timedelta(days=90))
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(
            x509.SubjectKeyIdentifier(ski) if ski else x509.SubjectKeyIdentifier.from_public_key(key.public_key()),
            critical=False,
        )
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signing_key.public_key()), critical=False)
        .sign(signing_key, hashes.SHA256())
        .public_bytes(Encoding.PEM)
    )
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    data = {"tls.crt": certificate, "tls.key": pem, "ca.crt": certificate}
    return {
        "metadata": {"name": "eastgate-ca", "namespace": "eastgate-system"},
        "data": {part: base64.b64encode(content).decode() for part, content in data.items()},
    }


class TestSomebodyElsesCa:
    @pytest.mark.parametrize("kind", ["rsa", "ecdsa"])
    def test_it_signs_with_the_ca_of_the_secret_and_never_writes(self, kind: str) -> None:
        api, clock = FakeSecrets(), Clock()
        key = rsa.generate_private_key(65537, 2048) if kind == "rsa" else ec.generate_private_key(ec.SECP384R1())
        api._store(_issuer(key, "one", clock, ski=b"as another computes it"))
        ca = _open(api, clock)
        assert isinstance(ca.source, IssuerCa)
        assert _verify(ca.source.issue(_ID), ca.source.bundles, clock.now) == _ID
        assert not asyncio.run(ca.rotate())
        assert api.version == 1

    def test_an_old_root_is_trusted_until_its_svids_have_expired(self) -> None:
        api, clock = FakeSecrets(), Clock()
        api._store(_issuer(ec.generate_private_key(ec.SECP256R1()), "one", clock))
        ca = _open(api, clock)
        old = ca.source.issue(_ID)
        api._store(_issuer(ec.generate_private_key(ec.SECP256R1()), "two", clock))
        asyncio.run(ca.refresh())
        assert _verify(old, ca.source.bundles, clock.now) == _ID
        assert _verify(ca.source.issue(_ID), ca.source.bundles, clock.now) == _ID
        clock.now += timedelta(hours=1, minutes=1)
        ca.source.issue(_ID)
        assert len(ca.source.bundles.of_domain("cluster.local")) == 1

    def test_another_trust_domain_is_not_vouched_for(self) -> None:
        api, clock = FakeSecrets(), Clock()
        api._store(_issuer(ec.generate_private_key(ec.SECP256R1()), "one", clock))
        with pytest.raises(Exception, match="trust domain"):
            _open(api, clock).source.issue("spiffe://else/ns/shop/sa/pay")

    def test_a_key_of_another_certificate_is_refused(self) -> None:
        clock = Clock()
        one = _issuer(ec.generate_private_key(ec.SECP256R1()), "one", clock)
        other = _issuer(ec.generate_private_key(ec.SECP256R1()), "two", clock)
        one["data"]["tls.key"] = other["data"]["tls.key"]
        with pytest.raises(StoredCaError):
            read_secret(one)

    @pytest.mark.parametrize("part", ["roots of another CA", "no certificate of a CA", "a key on an unknown curve"])
    def test_a_ca_whose_svids_no_peer_would_accept_changes_nothing(self, part: str) -> None:
        api, clock = FakeSecrets(), Clock()
        api._store(_issuer(ec.generate_private_key(ec.SECP256R1()), "one", clock))
        ca = _open(api, clock)
        key = ec.generate_private_key(ec.SECP256R1())
        unusable = _issuer(key, "two", clock, is_ca=part != "no certificate of a CA")
        if part == "roots of another CA":
            unusable["data"]["ca.crt"] = _issuer(ec.generate_private_key(ec.SECP256R1()), "x", clock)["data"]["ca.crt"]
        if part == "a key on an unknown curve":
            der = x509.load_pem_x509_certificate(base64.b64decode(unusable["data"]["tls.crt"])).public_bytes(
                Encoding.DER
            )
            unknown = der.replace(bytes.fromhex("2a8648ce3d030107"), bytes.fromhex("2a8648ce3d030907"))
            pem = b"-----BEGIN CERTIFICATE-----\n" + base64.encodebytes(unknown) + b"-----END CERTIFICATE-----\n"
            unusable["data"]["tls.crt"] = unusable["data"]["ca.crt"] = base64.b64encode(pem).decode()
        api._store(unusable)
        asyncio.run(ca.refresh())
        assert _verify(ca.source.issue(_ID), ca.source.bundles, clock.now) == _ID
        with pytest.raises(StoredCaError):
            _open(api, clock)

    def test_a_subordinate_ca_is_used_with_its_intermediates(self) -> None:
        clock = Clock()
        root, upper, lower = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
        top = _issuer(root, "root", clock)
        middle = _issuer(upper, "upper", clock, by=(root, "root"))
        secret = _issuer(lower, "lower", clock, by=(upper, "upper"))
        chain = b"".join(base64.b64decode(each["data"]["tls.crt"]) for each in (secret, middle))
        secret["data"] |= {"tls.crt": base64.b64encode(chain).decode(), "ca.crt": top["data"]["ca.crt"]}
        api = FakeSecrets()
        api._store(secret)
        ca = _open(api, clock)
        assert _verify(ca.source.issue(_ID), ca.source.bundles, clock.now) == _ID


class TestConfigMaps:
    def test_they_are_where_proxies_are_or_will_be(self) -> None:
        labelled = {"name": "new", "labels": {"eastgate.dev/injection": "enabled"}}
        namespaces = ({"apiVersion": "v1", "kind": "Namespace", "metadata": each} for each in (labelled, {"name": "x"}))
        world = authority(*namespaces, gateway(), gateway(namespace="other", class_name="istio")).world
        assert namespaces_with_proxies(world, ["pods/pay-1"]) == {"new", "shop", "pods"}

    def test_they_have_the_roots(self) -> None:
        ca = _open(FakeSecrets(), Clock())
        config_map = trust_config_map("shop", ca.source.bundles)
        assert config_map["metadata"]["name"] == "eastgate-ca"
        assert config_map["data"] == {"ca.crt": ca.source.bundles.pem("cluster.local")}


def test_printed_texts_contain_no_keys() -> None:
    api = FakeSecrets()
    _open(api, Clock())
    stored: StoredCa = read_secret(api.stored["eastgate-ca"])
    assert "PRIVATE" not in repr(stored)
    assert stored.session_key not in repr(stored)
