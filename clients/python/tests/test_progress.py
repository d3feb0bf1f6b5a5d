"""How far a task has come, as it comes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict
from typing import Any, Union

import httpx
import pytest

from holdfast_client import AsyncResumableTransport, LedgerError, ResumableTransport, Task, TaskProgress

USAGE = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}


def shown(steps: int, **more: Any) -> dict[str, Any]:
    return {
        "object": "holdfast.task",
        "id": "T",
        "status": "running",
        "reason": None,
        "created_at": 1_764_500_000,
        "steps": steps,
        "steps_total": 3,
        "usage": USAGE,
        "last_step": {"number": steps} if steps else None,
        **more,
    }


def step(number: int, status: str, *recoveries: object) -> dict[str, Any]:
    run = {"status": status, "step_name": "greet"}
    return {"object": "holdfast.step", "number": number, "run": run, "recoveries": list(recoveries)}


PURGED = {"object": "holdfast.task", "id": "T", "purged": True}
CALL = {"object": "holdfast.call", "key": "c1", "state": "claimed"}
COMPLETED = shown(3, status="completed", reason="done")
HISTORY = [
    shown(2),
    step(1, "complete"),
    step(2, "running"),
    CALL,
    step(2, "complete", {"attempt": 2}),
    step(3, "running"),
    step(3, "complete"),
    COMPLETED,
]


class Cut:
    """The connection is reset."""


Piece = Union[dict[str, Any], type[Cut]]


class Events(httpx.SyncByteStream, httpx.AsyncByteStream):
    def __init__(self, pieces: list[tuple[int, Piece]], open_streams: list[Events]) -> None:
        self._pieces = pieces
        self._open = open_streams
        self._open.append(self)

    def __iter__(self) -> Iterator[bytes]:
        for number, piece in self._pieces:
            if piece is Cut:
                raise httpx.ReadError("reset")
            yield f": hb\n\nid: {number}\nevent: x\ndata: {json.dumps(piece)}\n\n".encode()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for data in iter(self):
            yield data

    def close(self) -> None:
        if self in self._open:
            self._open.remove(self)

    async def aclose(self) -> None:
        self.close()


class Holdfast:
    """Sends one history, and cuts each stream after so many events. `GET` shows the state that it has sent."""

    def __init__(self, history: list[dict[str, Any]], *, cut_after: int | None = None) -> None:
        self.history = history
        self.cut_after = cut_after
        self.open: list[Events] = []
        self.asked: list[tuple[str, str | None]] = []
        #: Answered to what is asked next, in this order.
        self.refusals: list[httpx.Response] = []
        self.shown: list[httpx.Response] = []

    def answer(self, request: httpx.Request) -> httpx.Response:
        if "/holdfast/" not in request.url.path:
            return httpx.Response(200, json={})
        assert request.headers["authorization"] == "Bearer key"
        if not request.url.path.endswith("/events"):
            return self.shown.pop(0) if self.shown else httpx.Response(200, json=self.history_shown())
        last = request.headers.get("last-event-id")
        self.asked.append((request.url.host, last))
        if self.refusals:
            return self.refusals.pop(0)
        pieces: list[tuple[int, Piece]] = list(enumerate(self.history, 1))[int(last or 0) :]
        if self.cut_after is not None and len(pieces) >= self.cut_after:
            pieces = [*pieces[: self.cut_after], (0, Cut)]
        return httpx.Response(200, stream=Events(pieces, self.open))

    def history_shown(self) -> dict[str, Any]:
        return [each for each in self.history if each["object"] == "holdfast.task"][-1]


def watch(holdfast: Holdfast, is_async: bool, *, limit: int | None = None) -> list[TaskProgress]:
    """The progress that arrives, up to `limit` times."""
    task = Task("T")
    options: dict[str, Any] = {
        "task": task,
        "transport": httpx.MockTransport(holdfast.answer),
        "endpoints": ["http://a:1", "http://b:1"],
        "backoff_s": 0.0,
        "give_up_s": 1.0,
    }
    request: dict[str, Any] = {
        "url": "http://a:1/v1/chat/completions",
        "headers": {"Authorization": "Bearer key"},
        "json": {},
    }
    told: list[TaskProgress] = []

    async def read() -> None:
        async with httpx.AsyncClient(transport=AsyncResumableTransport(**options)) as client:
            await client.post(**request)
            watching = task.async_progress()
            async for progress in watching:
                told.append(progress)
                if len(told) == limit:
                    break
            await watching.aclose()

    if is_async:
        asyncio.run(read())
        return told
    with httpx.Client(transport=ResumableTransport(**options)) as client:
        client.post(**request)
        for progress in task.progress():
            told.append(progress)
            if len(told) == limit:
                break
    return told


def in_short(told: list[TaskProgress]) -> list[tuple[int, int, str]]:
    return [(each.steps_done, each.step.number if each.step else 0, each.status) for each in told]


is_async_or_not = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])


@is_async_or_not
@pytest.mark.parametrize("cut_after", [None, *range(1, len(HISTORY) + 1)])
def test_progress_is_told_in_order_wherever_its_connection_is_cut(
    cut_after: int | None, *, is_async: bool
) -> None:
    holdfast = Holdfast(HISTORY, cut_after=cut_after)
    # The task is shown as it is at the end of the history, while its steps come one after the other.
    told = watch(holdfast, is_async)
    assert in_short(told) == [
        (1, 2, "completed"),
        (2, 2, "completed"),
        (2, 3, "completed"),
        (3, 3, "completed"),
    ]
    assert asdict(told[-1]) == {
        "status": "completed",
        "reason": "done",
        "steps_done": 3,
        "steps": 3,
        "steps_total": 3,
        "usage": USAGE,
        "step": {"number": 3, "name": "greet", "status": "complete", "recoveries": ()},
    }
    assert told[1].step and told[1].step.recoveries == ({"attempt": 2},)
    assert holdfast.open == []
    if cut_after is not None:
        assert {host for host, _ in holdfast.asked} == {"a", "b"}


@is_async_or_not
def test_its_connection_is_closed_when_its_loop_is_left(*, is_async: bool) -> None:
    holdfast = Holdfast(HISTORY)
    assert len(watch(holdfast, is_async, limit=1)) == 1
    assert holdfast.open == []


@is_async_or_not
@pytest.mark.parametrize("last", [PURGED, shown(1, created_at=1_764_500_009)])
def test_a_task_that_is_deleted_ends_as_cancelled(last: dict[str, Any], *, is_async: bool) -> None:
    holdfast = Holdfast([shown(1), step(1, "complete"), last])
    holdfast.shown = [refusal(404, "task_not_found")]
    assert in_short(watch(holdfast, is_async)) == [(1, 1, "running"), (1, 1, "cancelled")]
    assert holdfast.open == []


def refusal(status: int, code: str) -> httpx.Response:
    return httpx.Response(status, json={"error": {"message": f"It is {code}.", "code": code}})


@is_async_or_not
def test_a_refusal_is_raised_unless_it_passes(*, is_async: bool) -> None:
    holdfast = Holdfast(HISTORY)
    holdfast.refusals = [refusal(429, "too_many_runs"), refusal(503, "x"), refusal(404, "task_not_found")]
    with pytest.raises(LedgerError, match="It is task_not_found") as raised:
        watch(holdfast, is_async)
    assert raised.value.code == "task_not_found"
    assert len(holdfast.asked) == 3
    holdfast = Holdfast([])
    with pytest.raises(LedgerError, match="could not be asked"):
        watch(holdfast, is_async)
    # The first one, and `max_retries` after that.
    assert len(holdfast.asked) == 9
    assert holdfast.open == []


def test_progress_needs_a_request_before_it() -> None:
    with pytest.raises(TypeError, match="to watch the task, make a request"):
        next(Task("T").progress())
