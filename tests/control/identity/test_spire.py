"""The Workload API of a real SPIRE agent: real attestation, real rotation, real federation."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509

from eastgate import Authority, Question, dialects
from eastgate.authority.reading import sort_documents
from eastgate.control.identity import (
    EmbeddedCa,
    IdentityChange,
    IdentityNotGrantedError,
    MissingDnsNameError,
    Rotation,
    Svid,
    SvidsRenewed,
    WorkloadApi,
    client_context,
    server_context,
)
from eastgate.local.calls import make_calls
from eastgate.local.mesh import LocalMesh, MeshOptions
from eastgate.reading.manifests.reader import read_text
from eastgate.settings import Settings
from tests.control.identity.handshakes import connect
from tests.control.identity.spire import Spire
from tests.patience import PATIENCE

WEB, DB = "spiffe://cluster.local/ns/shop/sa/web", "spiffe://cluster.local/ns/shop/sa/db"
NAME = "web.shop.serviceaccount.identity.linkerd.cluster.local"
PARTNER = EmbeddedCa("partner.example")

pytestmark = pytest.mark.spire


@pytest.fixture(scope="module")
def spire() -> Iterator[Spire]:
    folder = Path(tempfile.mkdtemp(prefix="spire"))
    try:
        with Spire(folder, "cluster.local") as running:
            bundle = folder / "partner.pem"
            bundle.write_text(PARTNER.bundles.pem("partner.example"))
            running.ask("bundle", "set", "-id", "spiffe://partner.example", "-path", str(bundle))
            running.register(WEB, "-dns", NAME, "-x509SVIDTTL", "20", "-federatesWith", "spiffe://partner.example")
            running.register(DB)
            yield running
    finally:
        shutil.rmtree(folder)


async def until_given(api: WorkloadApi, *identities: str) -> None:
    """Wait for an agent: a new one supplies nothing before it has contacted its server."""
    async with asyncio.timeout(40):
        for identity in identities:
            while True:
                try:
                    await api.svid(identity)
                    break
                except IdentityNotGrantedError:
                    await asyncio.sleep(0.1)


async def for_as_long_as_given(api: WorkloadApi, identity: str) -> None:
    while True:
        await api.svid(identity)
        await asyncio.sleep(0.1)


def test_svids_of_an_agent_speak_with_each_other(spire: Spire) -> None:
    async def run() -> None:
        async with WorkloadApi(spire.socket, "cluster.local") as api:
            await until_given(api, WEB, DB)
            web, db, bundles = await api.svid(WEB, [NAME]), await api.svid(DB), api.bundles
            leaf = x509.load_pem_x509_certificate(web.chain.encode())
            names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            assert names.get_values_for_type(x509.UniformResourceIdentifier) == [WEB]
            server, client = server_context(db, bundles), client_context(web, bundles)
            outcome = await asyncio.to_thread(connect, (server, bundles, WEB), (client, bundles, DB))
            assert (outcome.server_saw, outcome.client_saw) == (WEB, DB)

    asyncio.run(run())


def test_an_agent_brings_the_bundles_of_federated_trust_domains(spire: Spire) -> None:
    async def run() -> None:
        async with WorkloadApi(spire.socket, "cluster.local") as api:
            await until_given(api, WEB)
            assert api.bundles.trust_domains == ("cluster.local", "partner.example")
            assert api.bundles.of_domain("partner.example") == PARTNER.bundles.of_domain("partner.example")

    asyncio.run(run())


def test_an_identity_that_the_agent_does_not_grant_is_an_error(spire: Spire) -> None:
    async def run() -> None:
        async with WorkloadApi(spire.socket, "cluster.local") as api:
            await until_given(api, DB)
            with pytest.raises(IdentityNotGrantedError, match="register an entry for it"):
                await api.svid("spiffe://cluster.local/ns/bank/sa/vault")
            with pytest.raises(MissingDnsNameError, match=r"without the DNS name db\.example; add it to the entry"):
                await api.svid(DB, ["db.example"])

    asyncio.run(run())


def test_a_rotation_of_the_agent_reaches_the_holders_of_the_identity(spire: Spire) -> None:
    async def run() -> None:
        told: list[IdentityChange] = []
        renewed: asyncio.Queue[Svid] = asyncio.Queue()
        failures: list[Exception] = []
        async with WorkloadApi(spire.socket, "cluster.local") as api:
            await until_given(api, WEB)
            api.watch(told.append)
            async with Rotation(
                api, on_renewed=renewed.put_nowait, on_failure=lambda _, error: failures.append(error)
            ) as rotation:
                first = await rotation.hold(WEB)
                second = await asyncio.wait_for(renewed.get(), PATIENCE)
                assert second.not_after > first.not_after
                assert second.private_key != first.private_key
                assert rotation.current(WEB) == second
        assert SvidsRenewed(frozenset({WEB})) in told
        assert failures == []

    asyncio.run(run())


def test_an_entry_that_is_deleted_takes_its_identity_along(spire: Spire) -> None:
    brief = "spiffe://cluster.local/ns/shop/sa/brief"

    async def run() -> None:
        spire.register(brief)
        async with WorkloadApi(spire.socket, "cluster.local") as api:
            await until_given(api, brief)
            entry = json.loads(spire.ask("entry", "show", "-spiffeID", brief, "-output", "json"))["entries"][0]["id"]
            spire.ask("entry", "delete", "-entryID", entry)
            with pytest.raises(IdentityNotGrantedError, match=r"but spiffe://cluster\.local/ns/shop/sa/db, "):
                await asyncio.wait_for(for_as_long_as_given(api, brief), PATIENCE)

    asyncio.run(run())


MANIFESTS = """
apiVersion: v1
kind: Pod
metadata: {namespace: shop, name: db, labels: {app: db}}
spec: {serviceAccountName: db, containers: [{name: c, image: c, ports: [{containerPort: 5432}]}]}
---
apiVersion: gateway.networking.x-k8s.io/v1alpha2
kind: AuthorizationPolicy
metadata: {namespace: shop, name: web-only}
spec:
  targetRefs: [{kind: Pod, selector: {matchLabels: {app: db}}}]
  action: ALLOW
  rules: [{authorizationSource: {serviceAccounts: [web]}}]
"""


def test_a_mesh_takes_the_certificates_of_an_agent_for_its_own(spire: Spire) -> None:
    def read(settings: Settings) -> Authority:
        reading = read_text("manifests.yaml", MANIFESTS, positioned=dialects.reads)
        return Authority(sort_documents(reading.documents, settings, reading.reporter), settings)

    async def run() -> None:
        async with WorkloadApi(spire.socket, "cluster.local") as api:
            await until_given(api, WEB, DB)
        source = WorkloadApi(spire.socket, "cluster.local")
        options = MeshOptions(name=f"spire-{os.getpid()}", source=source)
        async with LocalMesh(read, options=options) as mesh:
            [web] = await make_calls(mesh, Question.of("sa:shop/web", "pod:shop/db", port=5432))
            [db] = await make_calls(mesh, Question.of("sa:shop/db", "pod:shop/db", port=5432))
            assert (web.allowed, web.agrees, db.allowed, db.agrees) == (True, True, False, True)

    asyncio.run(run())
