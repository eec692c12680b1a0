"""Lines of a proxy's log as what was decided."""

from __future__ import annotations

import pytest

from eastgate.mesh.access_log import read_record
from eastgate.mesh.mesh import LocalMesh

_LINE = {"eastgate": "request", "workload": "shop/cart", "port": 8080, "peer": "none", "source": "127.0.0.1:1"}
_ALLOWED, _DENIED = "200:open", "403:none-of-1"


@pytest.mark.parametrize(
    ("decision", "details", "flags", "allowed"),
    [
        (_ALLOWED, "via_upstream", None, True),
        (_ALLOWED, "upstream_reset_before_response_started{connection_termination}", "UC", True),
        (_ALLOWED, "downstream_remote_disconnect", "DC", True),
        (_ALLOWED, "stream_idle_timeout", "SI", True),
        (_ALLOWED, "route_not_found", "NR", False),
        (_DENIED, "rbac_access_denied_matched_policy[403:none-of-1]", None, False),
        (_DENIED, "downstream_remote_disconnect", "DC", False),
        (None, "downstream_remote_disconnect", "DC", False),
    ],
)
def test_a_request_is_allowed_where_it_was_passed_on_whatever_became_of_its_answer(
    decision: str | None, details: str, flags: str | None, allowed: bool
) -> None:
    seen = read_record({**_LINE, "decision": decision, "details": details, "flags": flags})
    assert seen is not None
    assert seen.allowed == allowed


def test_the_same_source_elsewhere_is_another_connection() -> None:
    """A client may call from one address and port to several workloads at once."""
    mesh = LocalMesh(lambda _: pytest.fail("nothing is read"))
    here = {"workload": "shop/cart", "port": 8080, "source": "127.64.0.6:4000"}
    there = {**here, "workload": "shop/web"}
    assert not mesh._is_already_reported({"eastgate": "unreachable", **here})
    assert not mesh._is_already_reported({"eastgate": "connection", **there})
    assert mesh._is_already_reported({"eastgate": "connection", **here})
    assert not mesh._is_already_reported({"eastgate": "connection", **here})
