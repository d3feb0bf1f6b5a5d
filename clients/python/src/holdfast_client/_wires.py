"""The APIs whose streams the transport resumes: where their requests go, and how their answers end."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple


class Wire(NamedTuple):
    #: The path of its requests, below `/v1` at a replica's root.
    path: str
    #: Whether the event with this payload is the last one of its answer: the end, or an error, which a replica sends
    #: only after giving the run up.
    is_last: Callable[[str], bool]


def wire_at(path: str) -> tuple[Wire, str] | None:
    """The wire of requests to this path, and the prefix before it; None if they're on none."""
    found = _ENDING.search(path)
    return (_WIRES[found[1]], path[: found.start()]) if found else None


def _is_last_chunk(payload: str) -> bool:
    if payload.strip() == "[DONE]":
        return True
    return '"error"' in payload and _fields_of(payload).get("error") is not None


def _of_types(*types: str) -> Callable[[str], bool]:
    # Hardly any event contains one of these words, and parsing every event would cost more than everything else.
    words = [f'"{each}"' for each in types]

    def is_last(payload: str) -> bool:
        return any(word in payload for word in words) and _fields_of(payload).get("type") in types

    return is_last


def _fields_of(payload: str) -> dict[str, Any]:
    try:
        fields = json.loads(payload)
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}


_is_response_end = _of_types(
    "response.completed", "response.incomplete", "response.cancelled", "response.failed", "error"
)


def _is_last_of_response(payload: str) -> bool:
    if not _is_response_end(payload):
        return False
    # After an error with its own object, `response.failed` still follows.
    fields = _fields_of(payload) if '"error"' in payload else {}
    return not (fields.get("type") == "error" and isinstance(fields.get("error"), dict))


_WIRES = {
    wire.path: wire
    for wire in (
        Wire("/chat/completions", _is_last_chunk),
        Wire("/completions", _is_last_chunk),
        Wire("/messages", _of_types("message_stop", "error")),
        Wire("/responses", _is_last_of_response),
    )
}
#: The leftmost match is the longest one.
_ENDING = re.compile(f"(?:/v1)?({'|'.join(_WIRES)})/?$")
