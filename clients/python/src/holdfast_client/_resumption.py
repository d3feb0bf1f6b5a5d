"""The course of one run: which replica to ask for what, what the application gets, and when to give up.

It has no input or output of its own, so one text serves every transport.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from random import random
from typing import NoReturn

from ._answer import NOT_RESUMABLE, RUN_NOT_FOUND, UNAVAILABLE, has_code, is_turned_away, opens_run
from ._budget import Budget, retry_after_s
from ._endpoints import Endpoints
from ._events import EventReader, EventTooLargeError
from ._options import Options
from ._request import RunRequests, WireRequest
from ._steps import (
    Call,
    Deliver,
    Drop,
    Interruption,
    Open,
    Outcome,
    PassOn,
    Read,
    ReadWhole,
    Reply,
    Send,
    Sleep,
    Steps,
    Work,
)
from ._tail import Tail


class Resumption:
    """One run, from the request to the last event that the application gets."""

    def __init__(
        self,
        request: WireRequest,
        options: Options,
        endpoints: Endpoints,
        truncated: Callable[[str], Exception],
        *,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random,
    ) -> None:
        """`truncated` makes the error for a response that ends before its answer does."""
        self._requests = RunRequests(request, options)
        self._endpoints = endpoints
        self._is_last = request.wire.is_last
        self._truncated = truncated
        self._budget = Budget(options, clock, jitter)
        #: The replica that this run asks.
        self._root = endpoints.first(request.root)
        #: The run's id; None until a replica sends it.
        self._run = self._requests.run
        self._events = EventReader()
        self._cursor = 0
        self._last_id: bytes | None = None
        self._tail = Tail()
        #: The first error that broke the stream since the last event.
        self._broken: Exception | None = None
        #: A replica couldn't continue without the request, so the next one gets it. Otherwise it isn't sent, as it may
        #: be large.
        self._is_request_wanted = False
        #: This asks for the rest without the request, and nothing of the rest has arrived yet.
        self._may_want_request = False
        self._is_asked = False
        self._has_ended = False

    def steps(self) -> Steps:
        """Take them in order. Raises the error for the application when the run can't continue."""
        if not (yield from self._begin()):
            self._has_ended = True
            yield PassOn()
            return
        yield Open()
        while not self._has_ended:
            try:
                data = yield from self._read()
            except Interruption as interruption:
                self._broken = self._broken or interruption.error
            else:
                if data is not None:
                    delivered = self._take(data)
                    if delivered:
                        yield Deliver(delivered)
                    if not self._is_request_wanted:
                        continue
                self._broken = self._broken or self._truncated("The stream ended before the answer did")
            yield from self._resume(self._broken)
        yield from self._drain()

    def cancellation(self, *, after_fault: bool = False) -> Call | None:
        """The request that cancels the run; None when there's nothing to cancel.

        A request without an answer may have begun a run nevertheless; one that failed with an error of its own may
        never have been sent.
        """
        if not self._is_asked or self._has_ended or (after_fault and self._run is None):
            return None
        return self._requests.cancellation(self._root, self._run)

    def _begin(self) -> Generator[Work, Outcome, bool]:
        """Whether the response at hand is the stream of a run; if not, it's the answer."""
        while True:
            error: Exception | None = None
            reply: Reply | None = None
            try:
                reply = yield from self._send(self._requests.original(self._root))
                if self._attach(reply):
                    return True
                if reply.status not in UNAVAILABLE or not is_turned_away((yield from self._read_whole())):
                    return False
            except Interruption as interruption:
                error = interruption.error
            wait_s = self._move_on(reply, is_closed_door=True)
            if wait_s is not None:
                yield Drop()
                yield Sleep(wait_s)
            elif error:
                self._give_up(error)
            else:
                return False

    def _resume(self, broken: Exception) -> Generator[Work, Outcome, None]:
        """Reopens the stream that `broken` interrupted; raises `broken` if that fails."""
        self._events = EventReader()
        reply: Reply | None = None
        is_closed_door = False
        while True:
            yield Drop()
            wait_s = self._move_on(reply, is_closed_door=is_closed_door)
            if wait_s is None:
                self._give_up(broken)
            yield Sleep(wait_s)
            try:
                reply = yield from self._send(self._next_call())
            except Interruption:
                reply, is_closed_door = None, True
                continue
            is_closed_door = reply.status in UNAVAILABLE
            self._is_request_wanted = False
            if self._attach(reply):
                return
            code = self._code_that_wants_request(reply.status)
            if code is not None:
                try:
                    self._is_request_wanted = has_code((yield from self._read_whole()), code)
                except Interruption:
                    reply = None
                    continue
            # There's nothing to lose yet, so simply repeat the request.
            if reply.status == 404 and self._cursor == 0 and self._run is not None:
                self._run = None
            # 409: the checkpoint lags behind the application, and its writer may be about to store the rest.
            elif not self._is_request_wanted and reply.status not in (409, 429) and reply.status < 500:
                yield Drop()
                self._give_up(broken)

    def _code_that_wants_request(self, status: int) -> str | None:
        if not self._may_want_request:
            return None
        if status == 409:
            return NOT_RESUMABLE
        # A replica that knows nothing about the run can continue it if it gets the request and all events.
        return RUN_NOT_FOUND if status == 404 and len(self._tail.payloads()) == self._cursor else None

    def _next_call(self) -> Call:
        self._may_want_request = self._run is not None and not self._is_request_wanted
        if self._run is None:
            return self._requests.original(self._root)
        tail = self._tail.payloads()
        return self._requests.rest(
            self._root, self._run, self._cursor, tail, self._last_id, is_whole=self._is_request_wanted
        )

    def _attach(self, reply: Reply) -> bool:
        if not opens_run(reply):
            return False
        self._endpoints.answered(self._root)
        run = reply.headers["holdfast-run-id"]
        # If another replica continued the answer differently, it has a different run and ids from here on.
        if run != self._run:
            self._last_id = None
        self._run = run
        return True

    def _move_on(self, reply: Reply | None, *, is_closed_door: bool) -> float | None:
        """Moves to the next replica. Returns how long to wait before asking it; None when the budget is spent."""
        self._endpoints.failed(self._root)
        self._root = self._endpoints.after(self._root)
        # One replica's wish for a wait needn't delay a request to another.
        is_fresh = not self._endpoints.has_failed(self._root)
        asked_s = None if reply is None or is_fresh else retry_after_s(reply.headers, time.time())
        return self._budget.next_s(asked_s, is_closed_door=is_closed_door)

    def _take(self, data: bytes) -> bytes:
        """The events that these bytes complete, up to the answer's last; none if the replica wants the request."""
        self._budget.heard()
        try:
            events = self._events.feed(data)
        except EventTooLargeError as error:
            # It would be just as large the next time.
            self._give_up(self._truncated(str(error)))
        frames = []
        for event in events:
            frames.append(event.frame)
            if event.payload is None:
                continue
            if self._may_want_request:
                self._may_want_request = False
                self._is_request_wanted = has_code(event.payload, NOT_RESUMABLE)
                if self._is_request_wanted:
                    return b""
            self._cursor += 1
            self._last_id = event.id
            self._tail.append(event.payload)
            self._budget.progressed()
            self._broken = None
            if self._is_last(event.payload):
                self._has_ended = True
                break
        return b"".join(frames)

    def _drain(self) -> Generator[Work, Outcome, None]:
        """A complete answer lacks only the end of the message; after that, the connection can be reused."""
        try:
            while (yield from self._read()) is not None:
                pass
        except Interruption:
            pass

    def _give_up(self, error: Exception) -> NoReturn:
        self._has_ended = True
        raise error

    def _send(self, call: Call) -> Generator[Work, Outcome, Reply]:
        self._is_asked = True
        outcome = yield Send(call)
        assert isinstance(outcome, Reply)
        return outcome

    def _read(self) -> Generator[Work, Outcome, bytes | None]:
        outcome = yield Read()
        assert not isinstance(outcome, Reply)
        return outcome

    def _read_whole(self) -> Generator[Work, Outcome, bytes]:
        outcome = yield ReadWhole()
        assert isinstance(outcome, bytes)
        return outcome
