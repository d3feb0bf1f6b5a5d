"""The transport for `httpx.AsyncClient` and its like, on asyncio and on trio."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from contextlib import suppress
from types import TracebackType
from typing import Any, ClassVar, TypeVar

import anyio
import httpx

from ._request import CANCEL_S, asks_for_stream, may_stream
from ._steps import Deliver, Drop, Open, Outcome, PassOn, Read, ReadWhole, Result, Send, Work
from ._transport import Exchange, Inner, Transport, head_of

Self = TypeVar("Self", bound="AsyncTransport[Any]")


class AsyncExchange(Exchange):
    """One run; once it is open, the body of its response. It may be closed while another task reads it."""

    def __init__(self, transport: AsyncTransport[Any], request: httpx.Request) -> None:
        super().__init__(transport, request)
        self._inner: httpx.AsyncBaseTransport = transport._inner
        self._response: httpx.Response | None = None
        self._body: AsyncIterator[bytes] | None = None
        self._left = anyio.Event()

    async def open(self) -> httpx.Response:
        result = await self._advance()
        assert self._response is not None
        return self._response if isinstance(result, PassOn) else self._opened(self._response)

    def __aiter__(self) -> AsyncIterator[bytes]:
        # Not a generator: openai-python goes on reading what it broke off by iterating once more.
        return self

    async def __anext__(self) -> bytes:
        result = await self._advance()
        if result is None:
            raise StopAsyncIteration
        assert isinstance(result, Deliver)
        return result.data

    async def aclose(self) -> None:
        await self._close()

    async def _close(self, after_fault: bool = False) -> None:
        cancellation = self._cancellation(after_fault)
        self._is_left = True
        self._left.set()
        # What closes a response is, more often than not, a task that is being cancelled.
        with anyio.move_on_after(CANCEL_S, shield=True):
            await self._drop()
            if cancellation:
                # A run that cannot be reached is cancelled by the server, later.
                with suppress(Exception):
                    await (await self._inner.handle_async_request(cancellation)).aread()

    async def _advance(self) -> Result | None:
        """Does what is to be done until there is something for the application; None at the end."""
        while True:
            step = self._next_step()
            if step is None or isinstance(step, (PassOn, Open, Deliver)):
                return step
            try:
                outcome = await self._perform(step)
            except self._library.interruptions as error:
                self._fail(error)
            except BaseException as error:
                # What is no `Exception` is the application's wish to leave.
                await self._close(after_fault=isinstance(error, Exception))
                raise
            else:
                self._succeed(outcome)
            if self._is_left:
                await self._drop()

    async def _perform(self, step: Work) -> Outcome:
        if isinstance(step, Send):
            return head_of(await self._keep(await self._inner.handle_async_request(self._build(step.call))))
        if isinstance(step, Read):
            return await self._read()
        if isinstance(step, ReadWhole):
            return await self._read_whole()
        if isinstance(step, Drop):
            await self._drop()
        else:
            with anyio.move_on_after(step.delay_s):
                await self._left.wait()
        return None

    async def _read(self) -> bytes | None:
        try:
            return await self._body.__anext__() if self._body else None
        except StopAsyncIteration:
            return None

    async def _read_whole(self) -> bytes:
        response = self._response
        assert response is not None
        pieces = []
        while (piece := await self._read()) is not None:
            pieces.append(piece)
        body = b"".join(pieces)
        await self._drop()
        await self._keep(self._whole(response, body))
        return body

    async def _keep(self, response: httpx.Response) -> httpx.Response:
        assert isinstance(response.stream, AsyncIterable)
        self._response, self._body = response, response.stream.__aiter__()
        return response

    async def _drop(self) -> None:
        response, self._response, self._body = self._response, None, None
        if response:
            with suppress(*self._library.interruptions):
                await response.aclose()


class AsyncTransport(Transport[Inner]):
    _exchange: ClassVar[type[AsyncExchange]]

    async def handle_async_request(self, request: Any) -> Any:
        if may_stream(request.method, str(request.url), request.headers.raw):
            if asks_for_stream(await request.aread()):
                return await self._exchange(self, request).open()
        return await self._inner.handle_async_request(request)

    async def aclose(self) -> None:
        self._is_closed = True
        await self._inner.aclose()

    async def __aenter__(self: Self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self._is_closed = True
        await self._inner.__aexit__(exc_type, exc_value, traceback)
