"""The course of one run: what is asked of whom, what the application is given, and when it is given up.

No input or output of its own, so that one text serves every transport.
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
    """One run, from the request to the last event the application is given."""

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
        #: The replica that is asked.
        self._root = endpoints.first(request.root)
        #: None while nobody has told.
        self._run = self._requests.run
        self._events = EventReader()
        self._cursor = 0
        self._last_id: bytes | None = None
        self._tail = Tail()
        #: What broke the stream first since the last event.
        self._broken: Exception | None = None
        #: A replica could not go on without the request: the next one that answers has it. Else none is sent it, for it
        #: may be large.
        self._is_request_wanted = False
        #: The request was not sent for the rest that is asked for, and nothing of that has come.
        self._may_want_request = False
        self._is_asked = False
        self._has_ended = False

    def steps(self) -> Steps:
        """To be taken in order. Raises what the application is to be told when there is no going on."""
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
        """The request that cancels the run; None when there is nothing to cancel.

        A request that nobody has answered may have begun a run all the same; one that met a fault of its own may
        never have been sent.
        """
        if not self._is_asked or self._has_ended or (after_fault and self._run is None):
            return None
        return self._requests.cancellation(self._root, self._run)

    def _begin(self) -> Generator[Work, Outcome, bool]:
        """Whether the response at hand is the stream of a run; if not, it is the answer."""
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
        """Opens the stream again that `broken` interrupted, or raises that if it cannot."""
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
            # With nothing to lose, the request can simply be made again.
            if reply.status == 404 and self._cursor == 0 and self._run is not None:
                self._run = None
            # 409: the checkpoint is behind what the application has, and whoever writes it may be about to.
            elif not self._is_request_wanted and reply.status not in (409, 429) and reply.status < 500:
                yield Drop()
                self._give_up(broken)

    def _code_that_wants_request(self, status: int) -> str | None:
        if not self._may_want_request:
            return None
        if status == 409:
            return NOT_RESUMABLE
        # A replica that knows nothing of the run can go on with it if it is brought all there is.
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
        # An answer that was continued differently elsewhere has a run of its own from here on, and other ids.
        if run != self._run:
            self._last_id = None
        self._run = run
        return True

    def _move_on(self, reply: Reply | None, *, is_closed_door: bool) -> float | None:
        """Turns to the next replica. How long to wait before it is asked; None when the budget is spent."""
        self._endpoints.failed(self._root)
        self._root = self._endpoints.after(self._root)
        # What one replica asks for need not keep another waiting.
        is_fresh = not self._endpoints.has_failed(self._root)
        asked_s = None if reply is None or is_fresh else retry_after_s(reply.headers, time.time())
        return self._budget.next_s(asked_s, is_closed_door=is_closed_door)

    def _take(self, data: bytes) -> bytes:
        """What these bytes complete, up to the last event of the answer; nothing where the request is wanted."""
        self._budget.heard()
        try:
            events = self._events.feed(data)
        except EventTooLargeError as error:
            # It would be as large the next time.
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
        """Of a complete answer only the end of the message is missing; the connection can be used after it."""
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
