"""An answer as the events of a run, and what an application should make of it."""

from __future__ import annotations

import json
import re

#: Characters of one to four bytes.
WORDS = [f"w{index} é 浪 🌊 " for index in range(8)]
TEXT = "".join(WORDS)
CALL = {"id": "call_1", "name": "tide", "arguments": {"harbour": "Tréguier", "note": 'say "error"'}}
USAGE = {"prompt_tokens": 3, "completion_tokens": 40, "total_tokens": 43}
DONE = "[DONE]"


def _chunk(choices: list[object], **more: object) -> str:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return json.dumps({**head, "choices": choices, **more}, ensure_ascii=False)


def _delta(delta: object, finish_reason: str | None = None) -> str:
    return _chunk([{"index": 0, "delta": delta, "finish_reason": finish_reason}])


def events() -> list[str]:
    """Payloads; the last one is `[DONE]`."""
    arguments = json.dumps(CALL["arguments"], ensure_ascii=False)
    function = {"name": CALL["name"], "arguments": ""}
    call = {"index": 0, "id": CALL["id"], "type": "function", "function": function}
    fragments = [{"index": 0, "function": {"arguments": part}} for part in (arguments[:20], arguments[20:])]
    return [
        _delta({"role": "assistant", "content": ""}),
        *(_delta({"content": word}) for word in WORDS),
        *(_delta({"tool_calls": [each]}) for each in (call, *fragments)),
        _delta({}, "tool_calls"),
        _chunk([], usage=USAGE),
        DONE,
    ]


EVENTS = events()
#: So few that every place in them can be tried: characters of one to four bytes, ids, comments, the end.
SHORT = ['{"a":"é浪🌊"}', '{"b":1}', '{"c":2}', '{"d":3}', DONE]
ERROR = json.dumps({"error": {"message": "given up", "type": "stream_interrupted", "code": "x"}})
#: The same on each wire, by the ends of their paths.
SHORTS = {
    "/chat/completions": SHORT,
    "/completions": ['{"text":"é浪🌊"}', '{"text":"b"}', DONE],
    "/messages": ['{"type":"a","text":"é浪🌊"}', '{"type":"b"}', '{"type":"message_stop"}'],
    "/responses": ['{"type":"a","delta":"é浪🌊"}', '{"type":"b"}', '{"type":"response.completed"}'],
}


def framed(payloads: list[str], run: str, after: int = 0) -> bytes:
    """The events after `after` as a replica sends them to whoever asked for ids, with a comment here and there.

    Where events have names, these are their types.
    """
    lines = [": holdfast\n"]
    for seq, payload in enumerate(payloads, 1):
        if seq <= after:
            continue
        name = _name_of(payload)
        event = f"event: {name}\n" if name else ""
        lines.append(f"id: {run}.1.{seq}\n{event}data: {payload}\n\n")
        if seq % 4 == 0:
            lines.append(": hb\n")
    return "".join(lines).encode()


def payloads_of(received: bytes) -> list[str]:
    """What a parser that knows nothing of ids makes of it; raises for anything that is no event or comment."""
    payloads = []
    name = None
    for line in received.decode().split("\n"):
        if line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data: "):
            payloads.append(line[6:])
            assert name == _name_of(line[6:]), f"{line!r} has the name {name}"
            name = None
        elif line and not line.startswith(":"):
            raise AssertionError(f"a line nobody asked for: {line!r}")
    return payloads


def _name_of(payload: str) -> str | None:
    found = re.match(r'{"type":"([^"]+)"', payload)
    return found[1] if found else None
