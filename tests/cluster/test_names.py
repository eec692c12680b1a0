"""Names and labels are accepted exactly where Kubernetes accepts them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from eastgate.cluster import dns_label_problem, dns_subdomain_problem, label_key_problem, label_value_problem

GOOD: list[tuple[Callable[[str], str | None], list[str]]] = [
    (dns_label_problem, ["a", "0", "a-b", "x" * 63, "9-9"]),
    (dns_subdomain_problem, ["a", "a.b", "a-b.c-d.e", "x" * 253, "0.0"]),
    (label_key_problem, ["a", "A_b.C", "x" * 63, "kubernetes.io/metadata.name", f"{'x' * 253}/{'y' * 63}"]),
    (label_value_problem, ["", "a", "A_b.C-d", "x" * 63, "1"]),
]
BAD: list[tuple[Callable[[str], str | None], str, str]] = [
    (dns_label_problem, "", "empty"),
    (dns_label_problem, "x" * 64, "longer than 63"),
    (dns_label_problem, "A", "lower-case"),
    (dns_label_problem, "a.b", "only"),
    (dns_label_problem, "-a", "starts and ends"),
    (dns_label_problem, "a-", "starts and ends"),
    (dns_label_problem, "a/b", "only"),
    (dns_label_problem, "a\n", "only"),
    (dns_label_problem, "ä", "only"),
    (dns_subdomain_problem, "", "empty"),
    (dns_subdomain_problem, "x" * 254, "longer than 253"),
    (dns_subdomain_problem, "a..b", "each part"),
    (dns_subdomain_problem, ".a", "each part"),
    (dns_subdomain_problem, "a.", "each part"),
    (dns_subdomain_problem, "a_b", "only"),
    (dns_subdomain_problem, "a/b", "only"),
    (dns_subdomain_problem, "a\n", "only"),
    (label_key_problem, "", "empty"),
    (label_key_problem, "a/", "after '/' is empty"),
    (label_key_problem, "/a", "before '/'"),
    (label_key_problem, "a/b/c", "more than one"),
    (label_key_problem, "A.io/b", "before '/'"),
    (label_key_problem, "x" * 64, "longer than 63"),
    (label_key_problem, "a.io/" + "x" * 64, "longer than 63"),
    (label_key_problem, "-a", "starts and ends"),
    (label_key_problem, "a b", "only"),
    (label_value_problem, "x" * 64, "longer than 63"),
    (label_value_problem, "a b", "only"),
    (label_value_problem, "a/b", "only"),
    (label_value_problem, "_a", "starts and ends"),
    (label_value_problem, "a.", "starts and ends"),
    (label_value_problem, "a\n", "only"),
]


@pytest.mark.parametrize(("problem", "text"), [(problem, text) for problem, texts in GOOD for text in texts])
def test_right_names_have_no_problem(problem: Callable[[str], str | None], text: str) -> None:
    assert problem(text) is None


@pytest.mark.parametrize(("problem", "text", "message"), BAD)
def test_wrong_names_have_a_problem(problem: Callable[[str], str | None], text: str, message: str) -> None:
    assert message in (problem(text) or "")
