"""The transport for `httpx.Client` and its counterparts."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, ClassVar, TypeVar

import httpx

from ._at_once import run_at_once
from ._exchange import Exchange
from ._steps import Course, Outcome, Work
from ._transport import Inner, Transport

Self = TypeVar("Self", bound="SyncTransport[Any]")


class SyncExchange(Exchange):
    """Another thread may close it during a read. Its coroutines never wait."""

    def __init__(self, transport: SyncTransport[Any], course: Course, request: httpx.Request) -> None:
        super().__init__(transport, course, request)
        self._body: Iterator[bytes] = iter(())
        self._left = threading.Event()
        #: Held while a step is under way.
        self._busy = threading.Lock()

    def open(self) -> httpx.Response:
        return run_at_once(self._open())

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        data = run_at_once(self._next())
        if data is None:
            raise StopIteration
        return data

    def close(self) -> None:
        run_at_once(self._leave())

    async def _leave(self, after_fault: bool = False) -> None:
        cancellation = self._cancellation(after_fault)
        self._is_left = True
        self._left.set()
        # If a socket is closed while a thread reads from it, another socket may soon have its number:
        # so such a thread closes it itself.
        if self._busy.acquire(blocking=False):
            await self._drop()
            self._busy.release()
        if cancellation:
            # If the run can't be reached, the server cancels it later.
            with suppress(Exception):
                self._inner.handle_request(cancellation).read()

    async def _perform(self, step: Work) -> Outcome:
        with self._busy:
            return await super()._perform(step)

    async def _send(self, request: httpx.Request) -> httpx.Response:
        response: httpx.Response = self._inner.handle_request(request)
        return response

    def _keep(self, response: httpx.Response) -> httpx.Response:
        assert isinstance(response.stream, Iterable)
        self._response, self._body = response, iter(response.stream)
        return response

    async def _read(self) -> bytes | None:
        return next(self._body, None) if self._response else None

    async def _close_response(self, response: httpx.Response) -> None:
        response.close()

    async def _wait(self, delay_s: float) -> None:
        self._left.wait(delay_s)


class SyncTransport(Transport[Inner]):
    _exchange: ClassVar[type[SyncExchange]]

    def handle_request(self, request: Any) -> Any:
        self._join(request)
        if self._may_be_ours(request):
            request.read()
            if course := self._course_of(request):
                return self._exchange(self, course, request).open()
        return self._inner.handle_request(request)

    def close(self) -> None:
        self._is_closed = True
        self._inner.close()

    def __enter__(self: Self) -> Self:
        self._inner.__enter__()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self._is_closed = True
        self._inner.__exit__(exc_type, exc_value, traceback)
