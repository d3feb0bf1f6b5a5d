"""Turns the bytes of a response into whole server-sent events."""

from __future__ import annotations

import re
from typing import NamedTuple

#: Far more than any event of a chat completion; anything longer isn't one.
EVENT_BYTES_MAX = 16 * 1024 * 1024

_LINE_END = re.compile(rb"\r\n|\r|\n")


class EventTooLargeError(Exception):
    """An event is larger than `EVENT_BYTES_MAX`."""


class Event(NamedTuple):
    """A unit for the application: an event, or a comment."""

    #: The lines to pass on, each ending in LF, and the blank line of an event.
    frame: bytes
    #: The content of the `data:` lines; None for a comment.
    payload: str | None = None
    #: The content of the `id:` line.
    id: bytes | None = None


class EventReader:
    """Reads one response. Every response needs a new one: half an event of one must never meet the next.

    `id` and `retry` lines are for the transport, which drops them: after an `id`, openai-python treats every further
    blank line as an event. It also drops blocks without data, which some clients treat as events. Comments pass, as
    single lines.
    """

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._lines: list[bytes] = []
        self._data: list[bytes] = []
        self._id: bytes | None = None
        self._pending_bytes = 0
        self._is_after_return = False

    def feed(self, received: bytes) -> list[Event]:
        """The events that these bytes complete. Raises `EventTooLargeError`."""
        # The first half of a CRLF has already ended its line.
        data = received[1:] if self._is_after_return and received[:1] == b"\n" else received
        if received:
            self._is_after_return = received[-1:] == b"\r"
        events: list[Event] = []
        *ends, begun = _LINE_END.split(data)
        for end in ends:
            line = b"".join([*self._line, end])
            self._line.clear()
            if line[:1] == b":":
                events.append(Event(line + b"\n"))
            elif line:
                self._add(line)
            elif (event := self._end()) is not None:
                events.append(event)
        if ends:
            self._pending_bytes = sum(map(len, self._lines))
        if begun:
            self._line.append(begun)
            self._pending_bytes += len(begun)
        if self._pending_bytes > EVENT_BYTES_MAX:
            raise EventTooLargeError(f"An event is larger than {EVENT_BYTES_MAX} bytes")
        return events

    def _add(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value[1:] if value[:1] == b" " else value
        if name == b"id":
            self._id = value
        elif name != b"retry":
            self._lines.append(line)
            if name == b"data":
                self._data.append(value)

    def _end(self) -> Event | None:
        event = None
        if self._data:
            payload = b"\n".join(self._data).decode("utf-8", "replace")
            event = Event(b"\n".join([*self._lines, b"", b""]), payload, self._id)
        self._lines.clear()
        self._data.clear()
        self._id = None
        return event
