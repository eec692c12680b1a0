"""The webhooks over HTTPS: answers, limits, and a change of certificates during requests."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from eastgate.control.authorizer.http_server import HttpLimits
from eastgate.control.identity import EmbeddedCa
from eastgate.controller.admission.changes import AdmissionJudgement, AdmissionRefusal, Mutation, RequestedChange
from eastgate.controller.admission.conversion import convert_object
from eastgate.controller.admission.server import LIMITS, WebhookCertificate, WebhookServer, names_of_service
from eastgate.controller.admission.webhooks import Webhooks
from tests.controller.admission.reviews import GROUP, Manifest, admission_review, policy, rules
from tests.controller.admission.running import IDENTITY
from tests.patience import PATIENCE

Ask = Any


class Client:
    """A client with one connection at a time, each with its own handshake."""

    def __init__(self, ca: EmbeddedCa, port: int) -> None:
        self._ca, self.port = ca, port

    async def connect(self, source: str = "127.0.0.1") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        trusted = ssl.create_default_context(cadata=self._ca.bundles.pem("cluster.local"))
        return await asyncio.open_connection(
            "127.0.0.1", self.port, ssl=trusted, server_hostname="localhost", local_addr=(source, 0)
        )

    async def send(self, path: str, body: bytes, method: str = "POST") -> tuple[int, Manifest]:
        reader, writer = await self.connect()
        try:
            head = (
                f"{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\nconnection: close\r\n"
            )
            writer.write(head.encode() + b"\r\n" + body)
            answer = await reader.read()
        finally:
            writer.close()
        head_of, _, content = answer.partition(b"\r\n\r\n")
        return int(head_of.split()[1]), json.loads(content or b"{}")

    async def review(self, path: str, review: Any) -> Manifest:
        status, answer = await self.send(f"{path}?timeout=10s", json.dumps(review).encode())
        assert status == 200, answer
        return dict(answer["response"])


@asynccontextmanager
async def serving(webhooks: Webhooks, limits: HttpLimits = LIMITS) -> AsyncIterator[Client]:
    ca = EmbeddedCa("cluster.local")
    async with (
        WebhookCertificate(ca, IDENTITY, ["localhost"]) as certificate,
        WebhookServer(webhooks, certificate.context, port=0, limits=limits, grace=1.0) as server,
    ):
        yield Client(ca, server.port)


def test_each_path_has_its_webhook() -> None:
    async def run() -> None:
        async with serving(Webhooks()) as client:
            allowed = await client.review("/validate", admission_review(policy(rules([{}]))))
            assert allowed == {"uid": "u", "allowed": True}
            refused = await client.review("/validate", admission_review(policy(rules([{"ports": []}]))))
            assert not refused["allowed"]
            assert await client.review("/diagnose", admission_review(policy(rules([{"ports": []}])))) == refused
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "shop"}}
            assert await client.review("/inject", admission_review(pod)) == {"uid": "u", "allowed": True}
            request = {"uid": "u", "desiredAPIVersion": f"{GROUP}/v1alpha1", "objects": [policy(rules([{}]))]}
            review = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}
            converted = await client.review("/convert", review)
            assert converted["result"]["status"] == "Success"
            assert (await client.send("/else", b"{}"))[0] == 404
            assert (await client.send("/validate", b"", "GET"))[0] == 405
            for body in (b"", b"{", b"[]", b"[" * 100_000, b"\xff", json.dumps({"kind": "AdmissionReview"}).encode()):
                for path in ("/validate", "/inject", "/convert"):
                    status, answer = await client.send(path, body)
                    assert status == 400, (path, body)
                    assert answer["error"]

    asyncio.run(run())


def conversion_review(*objects: Any) -> Manifest:
    request = {"uid": "u", "desiredAPIVersion": f"{GROUP}/v1alpha1", "objects": list(objects)}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}


def test_large_conversions_are_those_of_their_objects() -> None:
    objects = [policy(rules([{}]), labels={"a": "b" * 60, "number": str(number)}) for number in range(3000)]
    deep: Any = []
    for _ in range(300):
        deep = [deep]
    objects[7] |= {"spec": deep}

    async def run() -> None:
        async with serving(Webhooks()) as client:
            body = json.dumps(conversion_review(*objects)).encode()
            assert len(body) > 512 * 1024
            status, answer = await client.send("/convert", body)
            assert status == 200
            assert answer["response"]["uid"] == "u"
            assert answer["response"]["result"] == {"status": "Success"}
            expected = [convert_object(each, f"{GROUP}/v1alpha1") for each in objects]
            assert answer["response"]["convertedObjects"] == expected
            failing = await client.review("/convert", conversion_review(*objects, {"kind": "Pod"}))
            assert failing["result"]["status"] == "Failure"
            assert failing["convertedObjects"] == []
            for content in (b"x" * len(body), body[:-1], body.replace(b"ConversionReview", b"AdmissionReview")):
                assert (await client.send("/convert", content))[0] == 400

    asyncio.run(run())


def test_a_review_larger_than_an_object_can_be_is_not_decoded() -> None:
    async def run() -> None:
        async with serving(Webhooks()) as client:
            for path in ("/validate", "/diagnose", "/inject"):
                assert (await client.send(path, b" " * (8 * 1024 * 1024 + 1)))[0] == 413

    asyncio.run(run())


def test_the_peer_with_the_most_bytes_of_bodies_loses_a_connection() -> None:
    async def run() -> None:
        async with serving(Webhooks(), HttpLimits(body=1_000_000, bodies=1_500_000)) as client:
            theirs = [await client.connect("127.0.0.9") for _ in range(4)]
            for _, writer in theirs:
                writer.write(b"POST /convert HTTP/1.1\r\nhost: localhost\r\ncontent-length: 999999\r\n\r\n")
                writer.write(b" " * 400_000)
                with suppress(ConnectionError):
                    await writer.drain()
            async with asyncio.timeout(PATIENCE):
                ends = [asyncio.ensure_future(reader.read()) for reader, _ in theirs]
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
                body = json.dumps(conversion_review(*[policy(rules([{}]))] * 500)).encode()
                assert (await client.send("/convert", body))[0] == 200
            assert sum(not end.done() for end in ends) == 3
            for _, writer in theirs:
                writer.close()
            await asyncio.gather(*ends, return_exceptions=True)

    asyncio.run(run())


def test_a_pod_is_mutated_beside_the_event_loop() -> None:
    threads: list[threading.Thread] = []

    def mutate(_change: RequestedChange) -> Mutation:
        threads.append(threading.current_thread())
        return Mutation()

    async def run() -> None:
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "shop"}}
        await Webhooks(mutate=mutate).inject(admission_review(pod))

    asyncio.run(run())
    assert threads != [threading.main_thread()]


def test_a_body_that_is_too_large_is_refused() -> None:
    async def run() -> None:
        async with serving(Webhooks(), HttpLimits(body=1000)) as client:
            assert (await client.send("/validate", b"x" * 5000))[0] == 413

    asyncio.run(run())


def test_the_judge_only_gets_changes_that_may_change_decisions() -> None:
    asked: list[RequestedChange] = []

    async def judge(change: RequestedChange) -> AdmissionJudgement:
        asked.append(change)
        return AdmissionJudgement(
            (AdmissionRefusal("breaks an invariant"),), ("sandbox/* can now reach payments:8443",)
        )

    async def run() -> None:
        webhooks = Webhooks(judge=judge)
        good, broken = policy(rules([{}])), policy(rules([{"ports": []}]))
        answer = await webhooks.validate(admission_review(good))
        assert answer["response"]["status"]["message"] == "breaks an invariant"
        assert answer["response"]["warnings"] == ["sandbox/* can now reach payments:8443"]
        assert not (await webhooks.validate(admission_review(None, good)))["response"]["allowed"]
        assert len(asked) == 2
        await webhooks.validate(admission_review(broken))
        labelled = policy(rules([{}]), labels={"a": "b"})
        assert (await webhooks.validate(admission_review(labelled, good)))["response"]["allowed"]
        assert len(asked) == 2
        audited = policy(rules([{}]), annotations={"eastgate.dev/mode": "audit"})
        assert not (await webhooks.validate(admission_review(audited, good)))["response"]["allowed"]
        assert len(asked) == 3

    asyncio.run(run())


def test_the_judge_sees_the_stored_form() -> None:
    """Two policies may have the same form in the old version. An annotation distinguishes them."""
    asked: list[RequestedChange] = []

    async def judge(change: RequestedChange) -> AdmissionJudgement:
        asked.append(change)
        return AdmissionJudgement()

    def deep(path: str) -> Manifest:
        spec = rules([{"applicationAttributes": {"paths": [path]}}]) | {"enforcementLevel": "APPLICATION"}
        return policy(spec)

    async def run() -> None:
        old, new = (convert_object(deep(path), f"{GROUP}/v1alpha1") for path in ("/a", "/*"))
        assert old["spec"] == new["spec"]
        await Webhooks(judge=judge).validate(admission_review(new, old))
        assert [(change.version, change.old, change.new) for change in asked] == [("v1alpha2", deep("/a"), deep("/*"))]
        await Webhooks(judge=judge).validate(admission_review(old, old))
        assert len(asked) == 1

    asyncio.run(run())


def test_without_an_answer_of_the_judge_there_is_none() -> None:
    async def fail(_change: RequestedChange) -> AdmissionJudgement:
        raise RuntimeError("no world")

    async def hang(_change: RequestedChange) -> AdmissionJudgement:
        await asyncio.Event().wait()
        return AdmissionJudgement()

    async def run() -> None:
        body = json.dumps(admission_review(policy(rules([{}])))).encode()
        async with serving(Webhooks(judge=fail)) as client:
            assert (await client.send("/validate", body))[0] == 500
        async with serving(Webhooks(judge=hang, seconds=0.05)) as client:
            assert (await client.send("/validate", body))[0] == 504

    asyncio.run(run())


@pytest.mark.parametrize("is_about", [False, True])
def test_a_change_that_there_is_no_time_for_is_refused_where_an_invariant_is_about_it(is_about: bool) -> None:
    async def hang(_change: RequestedChange) -> AdmissionJudgement:
        await asyncio.Event().wait()
        return AdmissionJudgement()

    def late(change: RequestedChange) -> AdmissionJudgement:
        assert change.peer == "127.0.0.1"
        return AdmissionJudgement((AdmissionRefusal("overloaded"),) if is_about else (), ("not proven",))

    async def run() -> None:
        good = policy(rules([{}]))
        labelled = policy(rules([{}]), labels={"a": "b"})
        async with serving(Webhooks(judge=hang, late=late, seconds=2.0)) as client:
            answer = await client.review("/validate", admission_review(good))
            assert answer["allowed"] is not is_about
            assert answer["warnings"] == ["not proven"]
            assert (await client.review("/validate", admission_review(labelled, good)))["allowed"]

    asyncio.run(run())


def test_without_time_labels_and_the_last_finalizer_are_refused_where_they_may_mean_something() -> None:
    async def hang(_change: RequestedChange) -> AdmissionJudgement:
        await asyncio.Event().wait()
        return AdmissionJudgement()

    refusal = AdmissionJudgement((AdmissionRefusal("overloaded"),))
    pod: Manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "shop"}}
    labelled = pod | {"metadata": pod["metadata"] | {"labels": {"data": "cards"}}}
    held = policy(rules([{}]))
    held["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/hold"]}
    released = held | {"metadata": held["metadata"] | {"finalizers": []}}

    async def run() -> None:
        async with serving(Webhooks(judge=hang, late=lambda _: refusal, seconds=1.0)) as client:
            reviews = [admission_review(labelled, pod), admission_review(released, held)]
            by_status = admission_review(labelled, pod)
            by_status["request"]["subResource"] = "status"
            for review in (*reviews, by_status):
                assert not (await client.review("/validate", review))["allowed"]

    asyncio.run(run())


def test_a_change_without_validation_gets_no_answer_unless_an_invariant_refuses_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    go_on = threading.Event()
    monkeypatch.setattr(
        "eastgate.controller.admission.webhooks.judge_object", lambda *_: go_on.wait(PATIENCE) and AdmissionJudgement()
    )

    async def run() -> None:
        body = json.dumps(admission_review(policy(rules([{}])))).encode()
        refusal = AdmissionJudgement((AdmissionRefusal("overloaded"),))
        late = [AdmissionJudgement(), refusal]
        async with serving(Webhooks(late=lambda _: late.pop(0), seconds=0.2)) as client:
            assert (await client.send("/validate", body))[0] == 504
            assert (await client.send("/validate", body))[0] == 200

    asyncio.run(run())
    go_on.set()


def test_the_time_that_the_api_server_waits_counts() -> None:
    async def hang(_change: RequestedChange) -> AdmissionJudgement:
        await asyncio.Event().wait()
        return AdmissionJudgement()

    async def run() -> None:
        body = json.dumps(admission_review(policy(rules([{}])))).encode()
        async with serving(Webhooks(judge=hang, seconds=10 * PATIENCE)) as client:
            assert (await client.send("/validate?timeout=1s", body))[0] == 504

    asyncio.run(run())


def test_the_peer_with_the_most_connections_gives_one_to_another() -> None:
    async def run() -> None:
        async with serving(Webhooks(), HttpLimits(connections=4)) as client:
            theirs = [await client.connect("127.0.0.9") for _ in range(4)]
            body = json.dumps(admission_review(policy(rules([{}])))).encode()
            assert (await client.send("/validate", body))[0] == 200
            ends = [asyncio.ensure_future(reader.read()) for reader, _ in theirs]
            done, waiting = await asyncio.wait(ends, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
            assert (len(done), len(waiting)) == (1, 3)
            assert (await client.send("/validate", body))[0] == 200
            theirs.append(await client.connect("127.0.0.9"))
            reader, _ = await client.connect("127.0.0.9")  # it holds all available connections
            assert (await reader.read()).startswith(b"HTTP/1.1 503")
            for _, writer in theirs:
                writer.close()

    asyncio.run(run())


@pytest.mark.parametrize("refused", [False, True])
def test_a_mutation_is_a_patch_unless_it_is_refused(refused: bool) -> None:
    operation = {"op": "add", "path": "/metadata/labels", "value": {}}

    def mutate(_change: RequestedChange) -> Mutation:
        return Mutation((operation,), AdmissionJudgement((AdmissionRefusal("no"),) if refused else ()))

    async def run() -> None:
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "shop"}}
        response = (await Webhooks(mutate=mutate).inject(admission_review(pod)))["response"]
        assert response["allowed"] is not refused
        assert ("patch" in response) is not refused
        assert refused or response["patchType"] == "JSONPatch"

    asyncio.run(run())


def test_certificates_change_without_a_dropped_request() -> None:
    async def run() -> None:
        async with serving(Webhooks()) as client:
            ca = client._ca
            body = json.dumps(admission_review(policy(rules([{}])))).encode()
            reader, writer = await client.connect()
            seen = set()
            for turn in range(6):
                if turn == 2:
                    ca.roll_intermediate()
                if turn == 4:
                    ca.prepare_root()
                    ca.activate_root()
                await asyncio.sleep(0.05)
                answers = await asyncio.gather(*(client.send("/validate", body) for _ in range(8)))
                assert {status for status, _ in answers} == {200}
                fresh = await client.connect()
                seen.add(fresh[1].get_extra_info("ssl_object").getpeercert(binary_form=True))
                fresh[1].close()
                head = f"POST /validate HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n"
                writer.write(head.encode() + body)
                assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
                assert b"allowed" in await reader.read(1000)
            assert len(seen) == 3
            writer.close()

    asyncio.run(run())


def test_the_names_of_a_service() -> None:
    assert names_of_service("eastgate-system", "eastgate") == (
        "eastgate.eastgate-system.svc",
        "eastgate.eastgate-system.svc.cluster.local",
    )
