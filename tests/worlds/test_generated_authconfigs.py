"""On generated AuthConfigs the engine and the oracle agree on the AuthConfig that serves a host."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from eastgate import Question, Settings
from eastgate.authority.authority import Authority
from tests.worlds import authconfig_hosts_generate as generate
from tests.worlds.authconfig_hosts_oracle import Links, Manifest
from tests.worlds.test_generated_clusters import authority_of


def served(authority: Authority, host: str) -> tuple[int, str | None]:
    question = Question.of("anonymous", f"host:{host}", method="GET", path="/", host=host, headers={})
    decision = authority.decide(question)
    return decision.status, decision.policy


def expected(links: Links, host: str) -> tuple[int, str | None]:
    config = links.serving(host)
    return (404, None) if config is None else (200, f"AuthConfig/{config}")


@settings(max_examples=300, deadline=None)
@given(generate.configs(), generate.asked_hosts, st.booleans())
def test_engine_and_oracle_agree_on_the_config_of_a_host(
    configs: list[Manifest], hosts: list[str], superseding: bool
) -> None:
    chosen = Settings.from_mapping({"allowSupersedingHostSubsets": superseding})
    authority, links = authority_of(configs, chosen), Links(configs, superseding=superseding)
    for host in hosts:
        assert served(authority, host) == expected(links, host), host


@settings(max_examples=60, deadline=None)
@given(generate.configs(), generate.asked_hosts, st.randoms(use_true_random=False))
def test_the_order_of_manifests_changes_nothing(
    configs: list[Manifest], hosts: list[str], random: st.DataObject
) -> None:
    shuffled = list(configs)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    authorities = [authority_of(some, Settings()) for some in (configs, shuffled)]
    for host in hosts:
        assert len({served(authority, host) for authority in authorities}) == 1
