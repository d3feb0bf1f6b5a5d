"""Classifies the first response to a request."""

from __future__ import annotations

import json
from typing import Any

from ._steps import Reply

UNAVAILABLE = frozenset({502, 503, 504})

#: A replica can't continue a run without its request, which the store lacks.
NOT_RESUMABLE = "not_resumable"
#: The replica knows nothing about the run.
RUN_NOT_FOUND = "run_not_found"

#: Error codes that don't answer the request: the replica couldn't process it, or no longer has it.
_TRY_ELSEWHERE = frozenset({"shutting_down", "store_unavailable", "run_taken_over"})


def opens_run(reply: Reply) -> bool:
    """The stream of a run. Any other stream isn't Holdfast's, and can't be resumed."""
    headers = reply.headers
    return (
        reply.status == 200
        and "holdfast-run-id" in headers
        and headers.get("content-type", "").startswith("text/event-stream")
        and headers.get("content-encoding", "identity") == "identity"
    )


def is_turned_away(body: bytes) -> bool:
    """Whether a replica, or something in front of it, can't accept a request now.

    `body` belongs to a status in `UNAVAILABLE`. An error object in it says otherwise: Holdfast has tried, and asking
    again would only multiply its attempts.
    """
    error = _error_in(body)
    return error is None or error.get("code") in _TRY_ELSEWHERE


def has_code(body: bytes | str, code: str) -> bool:
    """Whether this is an error with that code: a reply's body, or an error event, which is the same on all wires."""
    error = _error_in(body)
    return error is not None and error.get("code") == code


def _error_in(body: bytes | str) -> dict[str, Any] | None:
    try:
        fields = json.loads(body)
    except ValueError:
        return None
    error = fields.get("error") if isinstance(fields, dict) else None
    return error if isinstance(error, dict) else None
