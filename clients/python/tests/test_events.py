from __future__ import annotations

import pytest
from answer import EVENTS, framed

from holdfast_client._events import EVENT_BYTES_MAX, EventReader, EventTooLargeError


def read(*pieces: bytes) -> tuple[bytes, list[str]]:
    reader = EventReader()
    events = [event for piece in pieces for event in reader.feed(piece)]
    payloads = [event.payload for event in events if event.payload is not None]
    return b"".join(event.frame for event in events), payloads


#: With an event of two lines, of which a split line end must not make two events.
STREAM = framed([*EVENTS, "a"], "run_1").replace(b"data: a\n", b"data: a\ndata: b\n")
PAYLOADS = [*EVENTS, "a\nb"]
PLAIN = b"".join(line for line in STREAM.splitlines(keepends=True) if not line.startswith(b"id:"))


def test_whole_events_go_on_without_their_ids() -> None:
    assert read(STREAM) == (PLAIN, PAYLOADS)


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
def test_every_split_reads_the_same(line_end: bytes) -> None:
    stream = STREAM.replace(b"\n", line_end)
    for place in range(len(stream) + 1):
        assert read(stream[:place], stream[place:]) == (PLAIN, PAYLOADS), place
    assert read(*(stream[place : place + 1] for place in range(len(stream)))) == (PLAIN, PAYLOADS)


def test_an_event_counts_once_its_blank_line_is_there() -> None:
    reader = EventReader()
    assert reader.feed(b"data: a\n") == []
    assert reader.feed(b"\n") == [(b"data: a\n\n", "a", None)]
    assert reader.feed(b"data: half") == []


def test_an_id_is_that_of_one_event() -> None:
    events = EventReader().feed(b"id: run_1.1.7\ndata: a\n\ndata: b\n\nid: 9\n\ndata: c\n\n")
    assert [(event.payload, event.id) for event in events] == [("a", b"run_1.1.7"), ("b", None), ("c", None)]


@pytest.mark.parametrize(
    ("received", "frame", "payloads"),
    [
        (b"id: 5\n\n", b"", []),
        (b"id\n\n", b"", []),
        (b"retry: 1500\n\n", b"", []),
        (b"\n\n\n", b"", []),
        (b"retry: 1\nid: 5\ndata: a\n\n", b"data: a\n\n", ["a"]),
        (b"identity: x\ndata: a\n\n", b"identity: x\ndata: a\n\n", ["a"]),
        (b": hb\n", b": hb\n", []),
        (b": hb\n\n", b": hb\n", []),
        (b": hb\nid: 5\n\n", b": hb\n", []),
        (b": hb\ndata: a\n\n", b": hb\ndata: a\n\n", ["a"]),
        (b"data: a\n: within\n\n", b": within\ndata: a\n\n", ["a"]),
        (b"event: x\n\ndata: a\n\n", b"data: a\n\n", ["a"]),
        (b"event: x\ndata: a\n\n", b"event: x\ndata: a\n\n", ["a"]),
        (b"data: a\ndata:b\n\n", b"data: a\ndata:b\n\n", ["a\nb"]),
        (b"data\n\n", b"data\n\n", [""]),
        (b"data: \xff\n\n", b"data: \xff\n\n", ["\ufffd"]),
    ],
)
def test_lines_of_other_kinds(received: bytes, frame: bytes, payloads: list[str]) -> None:
    assert read(received) == (frame, payloads)


def test_an_event_without_end_is_not_kept_for_ever() -> None:
    reader = EventReader()
    piece = b"data: " + b"x" * (EVENT_BYTES_MAX // 4)
    for _ in range(3):
        reader.feed(piece)
    with pytest.raises(EventTooLargeError, match="larger than"):
        reader.feed(piece)


def test_large_events_one_after_the_other_are_none_of_them_too_large() -> None:
    reader = EventReader()
    piece = b"data: " + b"x" * (EVENT_BYTES_MAX // 2) + b"\n\n"
    assert [len(reader.feed(piece)) for _ in range(3)] == [1, 1, 1]
