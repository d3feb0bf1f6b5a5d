"""What the first response to a request is."""

from __future__ import annotations

import json
from typing import Any

from ._steps import Reply

UNAVAILABLE = frozenset({502, 503, 504})

#: A replica cannot go on with a run without its request, which the store has not got.
NOT_RESUMABLE = "not_resumable"
#: It knows nothing of the run.
RUN_NOT_FOUND = "run_not_found"

#: Codes of errors that are no answer to the request: the replica could not look at it, or has it no more.
_TRY_ELSEWHERE = frozenset({"shutting_down", "store_unavailable", "run_taken_over"})


def opens_run(reply: Reply) -> bool:
    """The stream of a run. Any other stream is not Holdfast's, and nobody could resume it."""
    headers = reply.headers
    return (
        reply.status == 200
        and "holdfast-run-id" in headers
        and headers.get("content-type", "").startswith("text/event-stream")
        and headers.get("content-encoding", "identity") == "identity"
    )


def is_turned_away(body: bytes) -> bool:
    """Whether a replica, or what stands before it, cannot take a request now.

    `body` is that of a status in `UNAVAILABLE`. An error object in it says otherwise: Holdfast has tried, and asking
    again would only multiply its attempts.
    """
    error = _error_in(body)
    return error is None or error.get("code") in _TRY_ELSEWHERE


def has_code(body: bytes | str, code: str) -> bool:
    """Whether this is an error of that code: the body of a reply, or an error event as it is the same on all wires."""
    error = _error_in(body)
    return error is not None and error.get("code") == code


def _error_in(body: bytes | str) -> dict[str, Any] | None:
    try:
        fields = json.loads(body)
    except ValueError:
        return None
    error = fields.get("error") if isinstance(fields, dict) else None
    return error if isinstance(error, dict) else None
