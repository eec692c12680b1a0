"""A real Authorino and the oracle of its index find the same AuthConfig for each host, on generated AuthConfigs."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.authorino.asking import SERVED_BY, ask
from tests.authorino.deciding import table_of
from tests.authorino.requests import Issuers
from tests.authorino.running import Authorino
from tests.authorino.serving import serving
from tests.worlds import authconfig_hosts_generate as generate
from tests.worlds.authconfig_hosts_oracle import Links, Manifest, name_of

pytestmark = pytest.mark.authorino


_examples = count()


def renamed(config: Manifest, number: int) -> Manifest:
    """Return an AuthConfig of another namespace. Authorino remembers the hosts of deleted AuthConfigs by name."""
    metadata = config["metadata"]
    return {**config, "metadata": {**metadata, "namespace": f"{metadata['namespace']}-{number}"}}


def saying_its_name(config: Manifest) -> Manifest:
    header = {SERVED_BY: {"plain": {"expression": json.dumps(name_of(config))}}}
    return {**config, "spec": {**config["spec"], "response": {"success": {"headers": header}}}}


def case(host: str) -> Manifest:
    http = {"host": host, "method": "GET", "path": "/", "headers": {}}
    return {"from": "anonymous", "to": f"host:{host}", "http": http, "expect": "deny"}


@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(generate.configs(), generate.asked_hosts)
def test_authorino_and_oracle_agree_who_serves_a_host(
    either_authorino: Authorino, issuers: Issuers, tmp_path: Path, configs: list[Manifest], hosts: list[str]
) -> None:
    number = next(_examples)
    configs = [renamed(each, number) for each in configs]
    links = Links(configs, superseding=either_authorino.supersedes)
    table = table_of("hosts", [saying_its_name(each) for each in configs], [case(host) for host in hosts], tmp_path)
    with serving(table, either_authorino, issuers) as served:
        loose = {name for name, hosts in links.loose.items() if hosts}
        assert {name for name, why in served.problems.items() if why.startswith("HostsNotLinked")} == loose
        for each in table.cases:
            answer = ask(each.question, served, either_authorino)
            assert answer.served_by == links.serving(each.question.host or ""), (each.question.host, configs)
