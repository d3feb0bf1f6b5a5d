"""Takes the steps of one request with a library."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx

from ._steps import (
    Call,
    Course,
    Deliver,
    Drop,
    Interruption,
    Open,
    Outcome,
    PassOn,
    Read,
    ReadWhole,
    Reply,
    Result,
    Send,
    Work,
)

if TYPE_CHECKING:
    from ._transport import Transport


class Exchange:
    """One request and, once it's open, the body of its response. It may be closed during a read.

    It's asynchronous, but also works synchronously if the methods that subclasses supply never wait.
    """

    def __init__(self, transport: Transport[Any], course: Course, request: httpx.Request) -> None:
        self._transport = transport
        self._library = transport._library
        self._inner = transport._inner
        self._extensions = request.extensions
        self._course = course
        self._steps = course.steps()
        self._proceed: Callable[[], Work | Result] = partial(next, self._steps)
        self._response: httpx.Response | None = None
        #: The application closed the response, or broke off a step.
        self._is_left = False

    async def _send(self, request: httpx.Request) -> httpx.Response:
        raise NotImplementedError

    def _keep(self, response: httpx.Response) -> httpx.Response:
        """This becomes the response at hand."""
        raise NotImplementedError

    async def _read(self) -> bytes | None:
        """More of the response at hand; None at its end."""
        raise NotImplementedError

    async def _close_response(self, response: httpx.Response) -> None:
        raise NotImplementedError

    async def _wait(self, delay_s: float) -> None:
        """Waits, but no longer than until the application leaves."""
        raise NotImplementedError

    async def _leave(self, after_fault: bool = False) -> None:
        """Ends everything; `after_fault`: because of an error that isn't the network's."""
        raise NotImplementedError

    async def _open(self) -> httpx.Response:
        result = await self._advance()
        assert self._response is not None
        return self._response if isinstance(result, PassOn) else self._opened(self._response)

    async def _next(self) -> bytes | None:
        """More of the body; None at its end."""
        result = await self._advance()
        assert result is None or isinstance(result, Deliver)
        return result.data if result else None

    async def _advance(self) -> Result | None:
        """Takes steps until there's something for the application; None at the end."""
        while True:
            step = self._next_step()
            if step is None or isinstance(step, (PassOn, Open, Deliver)):
                return step
            try:
                outcome = await self._perform(step)
            except self._library.interruptions as error:
                self._proceed = partial(self._steps.throw, Interruption(error))
            except BaseException as error:
                # Anything but an `Exception` means that the application wants to leave.
                await self._leave(after_fault=isinstance(error, Exception))
                raise
            else:
                self._proceed = partial(self._steps.send, outcome)
            if self._is_left:
                await self._drop()

    def _next_step(self) -> Work | Result | None:
        """None after the last one."""
        if self._is_abandoned:
            raise self._library.closed("The response was closed before it was read to its end")
        proceed, self._proceed = self._proceed, partial(next, self._steps)
        try:
            return proceed()
        except StopIteration:
            return None

    async def _perform(self, step: Work) -> Outcome:
        if isinstance(step, Send):
            response = self._keep(await self._send(self._build(step.call)))
            return Reply(response.status_code, response.headers)
        if isinstance(step, Read):
            return await self._read()
        if isinstance(step, ReadWhole):
            return await self._read_whole()
        if isinstance(step, Drop):
            await self._drop()
        else:
            await self._wait(step.delay_s)
        return None

    async def _read_whole(self) -> bytes:
        response = self._response
        assert response is not None
        pieces = []
        while (piece := await self._read()) is not None:
            pieces.append(piece)
        body = b"".join(pieces)
        await self._drop()
        self._keep(self._again(response, body))
        return body

    async def _drop(self) -> None:
        response, self._response = self._response, None
        if response:
            with suppress(*self._library.interruptions):
                await self._close_response(response)

    @property
    def _is_abandoned(self) -> bool:
        """The application no longer waits: closing a client must not make it send more."""
        return self._is_left or self._transport._is_closed

    def _cancellation(self, after_fault: bool) -> httpx.Request | None:
        if self._is_abandoned or not self._transport._options.cancel_on_close:
            return None
        call = self._course.cancellation(after_fault=after_fault)
        return self._build(call) if call else None

    def _build(self, call: Call) -> httpx.Request:
        extensions = dict(self._extensions)
        allowed_s = dict(extensions.get("timeout", {}))
        for part, limit_s in call.limits_s.items():
            given_s = allowed_s.get(part)
            allowed_s[part] = limit_s if given_s is None else min(given_s, limit_s)
        extensions["timeout"] = allowed_s
        return self._library.request(
            call.method, call.url, headers=call.headers, content=call.body, extensions=extensions
        )

    def _opened(self, response: httpx.Response) -> httpx.Response:
        """A response with the head of `response`, and this as its body."""
        headers = response.headers.copy()
        # This header described the bytes of one connection.
        headers.pop("content-length", None)
        return self._library.response(
            response.status_code,
            headers=headers,
            stream=self,  # type: ignore[arg-type] # subclasses are byte streams of the library
            extensions=response.extensions,
        )

    def _again(self, response: httpx.Response, body: bytes) -> httpx.Response:
        """A copy of `response` that can be read again."""
        return self._library.response(
            response.status_code,
            headers=response.headers,
            stream=self._library.byte_stream(body),
            extensions=response.extensions,
        )
