"""What a replica answers when a pod is created."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from eastgate.admission.changes import ChangeOperation, Mutation, RequestedChange
from eastgate.controller.admitting import mutate_pod
from eastgate.injection import InjectionOptions


def _created(**spec: Any) -> Mutation:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "cart-", "annotations": spec.pop("annotations", {})},
        "spec": {"containers": [{"name": "cart", "image": "cart"}], **spec},
    }
    change = RequestedChange(ChangeOperation.CREATE, "", "v1", "Pod", "shop", "", None, pod)
    return asyncio.run(mutate_pod(InjectionOptions(), change))


def test_whoever_the_api_server_asks_about_gets_a_sidecar_whatever_is_known_of_the_namespace() -> None:
    assert any(operation["path"] == "/spec/initContainers" for operation in _created().patch)


def test_a_pod_that_wants_none_gets_none() -> None:
    assert _created(annotations={"eastgate.dev/inject": "false"}).patch == ()


def test_a_pod_on_the_network_of_its_node_is_warned_of() -> None:
    mutation = _created(hostNetwork=True)
    assert mutation.patch == ()
    assert len(mutation.judgement.warnings) == 1


@pytest.mark.parametrize("spec", [{"securityContext": {"runAsUser": 1337}}, {"containers": "cart"}])
def test_a_pod_that_cannot_have_one_is_refused(spec: dict[str, Any]) -> None:
    mutation = _created(**spec)
    assert mutation.patch == ()
    assert mutation.judgement.refusals
