"""What the first response to a request is."""

from __future__ import annotations

import json

from ._steps import Reply

UNAVAILABLE = frozenset({502, 503, 504})

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
    try:
        fields = json.loads(body)
    except ValueError:
        return True
    error = fields.get("error") if isinstance(fields, dict) else None
    return not isinstance(error, dict) or error.get("code") in _TRY_ELSEWHERE
