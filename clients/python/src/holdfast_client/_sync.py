"""The transport for `httpx.Client` and its like."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, ClassVar, TypeVar

import httpx

from ._request import asks_for_stream, may_stream
from ._steps import Deliver, Drop, Open, Outcome, PassOn, Read, ReadWhole, Result, Send, Work
from ._transport import Exchange, Inner, Transport, head_of

Self = TypeVar("Self", bound="SyncTransport[Any]")


class SyncExchange(Exchange):
    """One run; once it is open, the body of its response. It may be closed while another thread reads it."""

    def __init__(self, transport: SyncTransport[Any], request: httpx.Request) -> None:
        super().__init__(transport, request)
        self._inner: httpx.BaseTransport = transport._inner
        self._response: httpx.Response | None = None
        self._body: Iterator[bytes] = iter(())
        self._left = threading.Event()
        #: Held while a step is under way.
        self._busy = threading.Lock()

    def open(self) -> httpx.Response:
        result = self._advance()
        assert self._response is not None
        return self._response if isinstance(result, PassOn) else self._opened(self._response)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        result = self._advance()
        if result is None:
            raise StopIteration
        assert isinstance(result, Deliver)
        return result.data

    def close(self) -> None:
        self._close()

    def _close(self, after_fault: bool = False) -> None:
        cancellation = self._cancellation(after_fault)
        self._is_left = True
        self._left.set()
        # Of a socket that is closed under a thread that reads from it, the number may soon be that of another one:
        # such a thread closes it itself.
        if self._busy.acquire(blocking=False):
            self._drop()
            self._busy.release()
        if cancellation:
            # A run that cannot be reached is cancelled by the server, later.
            with suppress(Exception):
                self._inner.handle_request(cancellation).read()

    def _advance(self) -> Result | None:
        """Does what is to be done until there is something for the application; None at the end."""
        while True:
            step = self._next_step()
            if step is None or isinstance(step, (PassOn, Open, Deliver)):
                return step
            try:
                with self._busy:
                    outcome = self._perform(step)
            except self._library.interruptions as error:
                self._fail(error)
            except BaseException as error:
                # What is no `Exception` is the application's wish to leave.
                self._close(after_fault=isinstance(error, Exception))
                raise
            else:
                self._succeed(outcome)
            if self._is_left:
                self._drop()

    def _perform(self, step: Work) -> Outcome:
        if isinstance(step, Send):
            return head_of(self._keep(self._inner.handle_request(self._build(step.call))))
        if isinstance(step, Read):
            return next(self._body, None)
        if isinstance(step, ReadWhole):
            return self._read_whole()
        if isinstance(step, Drop):
            self._drop()
        else:
            self._left.wait(step.delay_s)
        return None

    def _read_whole(self) -> bytes:
        response = self._response
        assert response is not None
        body = b"".join(self._body)
        self._drop()
        self._keep(self._whole(response, body))
        return body

    def _keep(self, response: httpx.Response) -> httpx.Response:
        assert isinstance(response.stream, Iterable)
        self._response, self._body = response, iter(response.stream)
        return response

    def _drop(self) -> None:
        response, self._response, self._body = self._response, None, iter(())
        if response:
            with suppress(*self._library.interruptions):
                response.close()


class SyncTransport(Transport[Inner]):
    _exchange: ClassVar[type[SyncExchange]]

    def handle_request(self, request: Any) -> Any:
        if may_stream(request.method, str(request.url), request.headers.raw):
            if asks_for_stream(request.read()):
                return self._exchange(self, request).open()
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
