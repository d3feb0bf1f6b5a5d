from __future__ import annotations

import pytest

from holdfast_client._answer import is_turned_away, opens_run
from holdfast_client._steps import Reply

RUN = {"holdfast-run-id": "run_1", "content-type": "text/event-stream; charset=utf-8"}


@pytest.mark.parametrize(
    ("status", "headers", "opens"),
    [
        (200, RUN, True),
        (200, {**RUN, "content-encoding": "identity"}, True),
        (200, {**RUN, "content-encoding": "gzip"}, False),
        (200, {**RUN, "content-type": "application/json"}, False),
        (200, {"content-type": "text/event-stream"}, False),
        (200, {"holdfast-run-id": "run_1"}, False),
        (201, RUN, False),
        (503, RUN, False),
    ],
)
def test_what_opens_a_run(status: int, headers: dict[str, str], opens: bool) -> None:
    assert opens_run(Reply(status, headers)) is opens


@pytest.mark.parametrize(
    ("body", "turned_away"),
    [
        (b"", True),
        (b"<html>Bad Gateway</html>", True),
        (b"\xff", True),
        (b'{"message": "no upstream"}', True),
        (b'"error"', True),
        (b'{"error": "text"}', True),
        (b'{"error": {"code": "shutting_down"}}', True),
        (b'{"error": {"code": "store_unavailable"}}', True),
        (b'{"error": {"code": "run_taken_over"}}', True),
        (b'{"error": {"code": "upstream_unavailable"}}', False),
        (b'{"error": {"message": "overloaded"}}', False),
    ],
)
def test_who_could_not_look_at_the_request(body: bytes, turned_away: bool) -> None:
    assert is_turned_away(body) is turned_away
