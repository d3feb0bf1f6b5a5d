"""The transport for `httpx.AsyncClient` and its counterparts, on asyncio and trio."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from contextlib import suppress
from types import TracebackType
from typing import Any, ClassVar, TypeVar

import anyio
import httpx

from ._exchange import Exchange
from ._request import CANCEL_S
from ._steps import Course
from ._transport import Inner, Transport

Self = TypeVar("Self", bound="AsyncTransport[Any]")


class AsyncExchange(Exchange):
    """Another task may close it during a read."""

    def __init__(self, transport: AsyncTransport[Any], course: Course, request: httpx.Request) -> None:
        super().__init__(transport, course, request)
        self._body: AsyncIterator[bytes] | None = None
        self._left = anyio.Event()

    async def open(self) -> httpx.Response:
        return await self._open()

    def __aiter__(self) -> AsyncIterator[bytes]:
        # Not a generator: openai-python resumes a read that it broke off by iterating again.
        return self

    async def __anext__(self) -> bytes:
        data = await self._next()
        if data is None:
            raise StopAsyncIteration
        return data

    async def aclose(self) -> None:
        await self._leave()

    async def _leave(self, after_fault: bool = False) -> None:
        cancellation = self._cancellation(after_fault)
        self._is_left = True
        self._left.set()
        # Usually, a task that's being cancelled closes the response.
        with anyio.move_on_after(CANCEL_S, shield=True):
            await self._drop()
            if cancellation:
                # If the run can't be reached, the server cancels it later.
                with suppress(Exception):
                    await (await self._inner.handle_async_request(cancellation)).aread()

    async def _send(self, request: httpx.Request) -> httpx.Response:
        response: httpx.Response = await self._inner.handle_async_request(request)
        return response

    def _keep(self, response: httpx.Response) -> httpx.Response:
        assert isinstance(response.stream, AsyncIterable)
        self._response, self._body = response, response.stream.__aiter__()
        return response

    async def _read(self) -> bytes | None:
        try:
            return await self._body.__anext__() if self._body and self._response else None
        except StopAsyncIteration:
            return None

    async def _close_response(self, response: httpx.Response) -> None:
        await response.aclose()

    async def _wait(self, delay_s: float) -> None:
        with anyio.move_on_after(delay_s):
            await self._left.wait()


class AsyncTransport(Transport[Inner]):
    _exchange: ClassVar[type[AsyncExchange]]

    async def handle_async_request(self, request: Any) -> Any:
        self._join(request)
        if self._may_be_ours(request):
            await request.aread()
            if course := self._course_of(request):
                return await self._exchange(self, course, request).open()
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
