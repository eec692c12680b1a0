"""Questions about AuthConfigs and hosts, and the answers after changes of manifests."""

from __future__ import annotations

import pytest

from eastgate.authority.questions import QuestionError
from eastgate.authority.spelling import KnownNames
from eastgate.cluster import ObjectId
from eastgate.cluster.question import Question
from tests.dialects.kuadrant.authconfigs.configs import GROUP, ask, authority, config, servers

NOBODY = {"authorization": {"nobody": {"patternMatching": {"patterns": [{"predicate": "false"}]}}}}


def test_an_auth_config_with_one_host_is_asked_about_that() -> None:
    decision = ask(authority(config("n/a", "x.io")), "authconfig:n/a")
    assert (decision.allowed, decision.policy) == (True, "AuthConfig/n/a")
    assert decision.arrival.where == "AuthConfig n/a, host x.io"


@pytest.mark.parametrize("hosts", [["x.io", "y.io"], ["*.io"]])
def test_of_several_hosts_or_a_wildcard_the_question_says_which(hosts: list[str]) -> None:
    of = authority(config("n/a", *hosts))
    with pytest.raises(QuestionError) as error:
        ask(of, "authconfig:n/a")
    assert error.value.diagnostic.message == f"the host is missing: AuthConfig n/a is for {' and '.join(hosts)}"
    assert error.value.diagnostic.help == "give the host of the request: --host, or http: {host: ..} in a table"
    assert ask(of, "authconfig:n/a", "x.io").policy == "AuthConfig/n/a"


def test_an_auth_config_that_nobody_declares_is_none() -> None:
    with pytest.raises(QuestionError, match="no manifest declares AuthConfig n/b"):
        ask(authority(config("n/a", "x.io")), "authconfig:n/b", "x.io")


def test_a_host_that_another_has_is_not_found_and_the_reason_says_who_has_it() -> None:
    of = authority(config("n/a", "x.io", day=1), config("n/b", "x.io", "y.io", day=2))
    decision = ask(of, "authconfig:n/b", "x.io:80")
    assert (decision.status, decision.policy) == (404, "AuthConfig/n/a")
    has_it = "(the host x.io is linked to it, and not to the AuthConfig that is asked about)"
    assert decision.reason == f"AuthConfig/n/a {has_it} denies it"


@pytest.mark.parametrize("to", ["host:z.io", "authconfig:n/a"])
def test_a_host_that_nobody_has_is_not_found(to: str) -> None:
    decision = ask(authority(config("n/a", "x.io")), to, "z.io")
    assert (decision.status, decision.policy, decision.reason) == (404, None, "no AuthConfig is for the host")


def test_without_any_auth_config_a_host_is_outside_and_no_proxy_finds_it() -> None:
    without = authority()
    assert ask(without, "host:x.io").allowed
    assert without.enforced(Question.of("anonymous", "host:x.io", method="GET", path="/")).status == 404


# A host of a question, and the suggested host.
MISSPELT = [("talker.exmple", "talker.example"), ("Talker.example:80", None), ("a.pages.example", None), ("z.io", None)]


@pytest.mark.parametrize(("host", "meant"), MISSPELT)
def test_a_host_that_is_probably_misspelt_is_told(host: str, meant: str | None) -> None:
    known = KnownNames(authority(config("n/a", "talker.example", "*.pages.example")))
    for question in (Question.of("anonymous", f"host:{host}"), Question.of("anonymous", "authconfig:n/a", host=host)):
        assert [doubt.help for doubt in known.doubts(question)] == ([f"did you mean {meant}?"] if meant else [])


def test_the_host_that_is_looked_up_need_not_be_that_of_the_request() -> None:
    spec = {"authorization": {"a": {"patternMatching": {"patterns": [{"predicate": "request.host == 'y.io'"}]}}}}
    of = authority(config("n/a", "x.io", spec=spec))
    assert ask(of, "host:x.io", "y.io").allowed
    assert not ask(of, "host:x.io").allowed


def test_secrets_are_those_of_its_own_namespace() -> None:
    keys = {"authentication": {"keys": {"apiKey": {"selector": {"matchLabels": {"of": "us"}}}}}}
    secrets = [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "key", "namespace": namespace, "labels": {"of": "us"}},
            "stringData": {"api_key": f"key-of-{namespace}"},
        }
        for namespace in ("n", "m", "kuadrant-system")
    ]
    of = authority(config("n/a", "x.io", spec=keys), *secrets)
    statuses = {
        namespace: ask(of, "host:x.io", headers={"authorization": f"Bearer key-of-{namespace}"}).status
        for namespace in ("n", "m", "kuadrant-system")
    }
    assert statuses == {"n": 200, "m": 401, "kuadrant-system": 401}


def test_audit_lets_everything_pass_and_has_its_hosts() -> None:
    audited = config("n/a", "x.io", day=1, spec=NOBODY)
    audited["metadata"]["annotations"] = {"eastgate.dev/mode": "audit"}
    of = authority(audited, config("n/b", "x.io", day=2))
    decision = ask(of, "host:x.io")
    assert (decision.allowed, decision.policy) == (True, None)
    assert not ask(authority(config("n/a", "x.io", spec=NOBODY)), "host:x.io").allowed


def test_a_change_counts_at_once_wherever_it_touches_hosts() -> None:
    of = authority(config("n/wide", "*.io", day=2))
    hosts = ["x.io", "y.io", "z.com"]
    assert servers(of, hosts) == {"x.io": "n/wide", "y.io": "n/wide", "z.com": None}
    of.update(put=[config("n/narrow", "x.io", "z.com", day=1)])
    assert servers(of, hosts) == {"x.io": "n/narrow", "y.io": "n/wide", "z.com": "n/narrow"}
    of.update(put=[config("n/narrow", "z.com", day=1)])
    assert servers(of, hosts) == {"x.io": "n/wide", "y.io": "n/wide", "z.com": "n/narrow"}
    of.update(remove=[ObjectId(GROUP, "AuthConfig", "n", "wide")])
    assert servers(of, hosts) == {"x.io": None, "y.io": None, "z.com": "n/narrow"}


def test_one_with_errors_closes_its_hosts_and_no_others() -> None:
    bad = config("n/bad", "x.io", "*.y.io", spec={"authorization": {"a": {"nonsense": {}}}})
    of = authority(bad, config("n/good", "z.io", "a.y.io"), strict=False)
    assert servers(of, ["z.io"]) == {"z.io": "n/good"}
    for host in ("x.io", "x.io:80", "a.y.io", "b.y.io", "y.io"):
        with pytest.raises(QuestionError, match="AuthConfig/n/bad cannot be read"):
            ask(of, f"host:{host}")
    assert ask(of, "host:w.io").status == 404


UNREADABLE = [
    {"hosts": "x.io"},
    {"hosts": [1]},
    {"hosts": ["http://x.io"]},
    {"hosts": []},
]


@pytest.mark.parametrize("spec", UNREADABLE)
def test_one_whose_hosts_cannot_be_read_closes_all_hosts(spec: dict[str, object]) -> None:
    of = authority(config("n/bad", spec=spec), config("n/good", "z.io"), strict=False)
    with pytest.raises(QuestionError, match="AuthConfig/n/bad cannot be read"):
        ask(of, "host:z.io")


def test_a_version_that_is_none_closes_all_hosts_and_nothing_else() -> None:
    unknown = {**config("n/bad", "x.io"), "apiVersion": f"{GROUP}/v2"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "n"},
        "spec": {"containers": [{"name": "app"}]},
    }
    of = authority(unknown, config("n/good", "z.io"), pod, strict=False)
    with pytest.raises(QuestionError, match="AuthConfig/n/bad cannot be read"):
        ask(of, "host:z.io")
    assert ask(of, "pod:n/p").allowed
