"""What no network does on demand: inner transports that fail, wait and raise where they are told to."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Iterator

import anyio
import httpx
import pytest
from answer import EVENTS, framed, payloads_of
from reading import Reading
from replicas import PATIENCE_S

from holdfast_client import AsyncResumableTransport, ResumableTransport

RUN = "run_1"
BEGINNING = framed(EVENTS[:3], RUN)
REST = framed(EVENTS, RUN, 3)
HEADERS = {"holdfast-run-id": RUN, "content-type": "text/event-stream"}
REQUEST = httpx.Request("POST", "http://a/v1/chat/completions", content=b'{"stream": true}')

#: Failures of the network or of a replica, as httpx has them.
INTERRUPTIONS = [
    httpx.ConnectError("x"),
    httpx.ReadError("x"),
    httpx.WriteError("x"),
    httpx.CloseError("x"),
    httpx.RemoteProtocolError("x"),
    httpx.ProxyError("x"),
    httpx.ConnectTimeout("x"),
    httpx.ReadTimeout("x"),
    httpx.WriteTimeout("x"),
    ssl.SSLError("x"),
    anyio.EndOfStream(),
]
#: What another try would not help against.
FAULTS = [
    httpx.PoolTimeout("x"),
    httpx.LocalProtocolError("x"),
    httpx.UnsupportedProtocol("x"),
    RuntimeError("x"),
]


class Body(httpx.SyncByteStream, httpx.AsyncByteStream):
    """Bytes, and then an error, or what else is to happen."""

    def __init__(self, data: bytes, then: Exception | None = None) -> None:
        self.data = data
        self.then = then
        self.is_closed = False

    def __iter__(self) -> Iterator[bytes]:
        yield self.data
        if self.then:
            raise self.then

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self.data
        if self.then:
            raise self.then
        await asyncio.sleep(0)

    def close(self) -> None:
        self.is_closed = True

    async def aclose(self) -> None:
        self.is_closed = True


class Endless(Body):
    """Bytes, and then nothing, for ever."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self.data
        await asyncio.Event().wait()


class Inner(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Answers one request after the other as it is told to, and waits before some."""

    def __init__(self, *answers: Body | Exception, before: Callable[[int], None] | None = None) -> None:
        self.methods: list[str] = []
        self._answers = list(answers)
        self._before = before

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.methods.append(request.method)
        if request.method == "DELETE":
            return httpx.Response(200)
        if self._before:
            self._before(len(self.methods))
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(200, headers={**HEADERS, "content-length": "7"}, stream=answer)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return self.handle_request(request)


def test_heads_do_not_tell_the_length_of_one_response() -> None:
    transport = ResumableTransport(transport=Inner(Body(BEGINNING + REST)))
    assert "content-length" not in transport.handle_request(REQUEST).headers


@pytest.mark.parametrize("error", INTERRUPTIONS, ids=lambda error: type(error).__name__)
def test_what_interrupts_a_run(error: Exception) -> None:
    inner = Inner(error, Body(BEGINNING, error), error, Body(REST))
    transport = ResumableTransport(transport=inner, backoff_s=0)
    response = transport.handle_request(REQUEST)
    assert payloads_of(response.read()) == EVENTS
    assert inner.methods == ["POST"] * 4


@pytest.mark.parametrize("error", FAULTS, ids=lambda error: type(error).__name__)
def test_what_is_a_fault_of_its_own(error: Exception) -> None:
    inner = Inner(error)
    with pytest.raises(type(error)):
        ResumableTransport(transport=inner).handle_request(REQUEST)
    assert inner.methods == ["POST"]


def test_nothing_goes_on_after_a_fault() -> None:
    body = Body(BEGINNING, RuntimeError("a bug"))
    inner = Inner(body)
    stream = iter(ResumableTransport(transport=inner).handle_request(REQUEST).stream)
    assert payloads_of(next(stream)) == EVENTS[:3]
    with pytest.raises(RuntimeError, match="a bug"):
        next(stream)
    with pytest.raises(httpx.ReadError):
        next(stream)
    assert body.is_closed
    assert inner.methods == ["POST", "DELETE"]


def test_nothing_goes_on_after_a_task_was_cancelled() -> None:
    body = Endless(BEGINNING)
    inner = Inner(body)

    async def read() -> None:
        response = await AsyncResumableTransport(transport=inner).handle_async_request(REQUEST)
        stream = response.stream.__aiter__()
        assert payloads_of(await stream.__anext__()) == EVENTS[:3]
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(stream.__anext__(), 0.05)
        with pytest.raises(httpx.ReadError):
            await stream.__anext__()

    asyncio.run(read())
    assert body.is_closed
    assert inner.methods == ["POST", "DELETE"]


def test_a_response_that_comes_after_its_reader_has_left_is_closed() -> None:
    late = Body(REST)
    is_asked, has_left = threading.Event(), threading.Event()

    def before(request: int) -> None:
        if request == 2:
            is_asked.set()
            assert has_left.wait(PATIENCE_S)

    inner = Inner(Body(BEGINNING, httpx.ReadError("x")), late, before=before)
    response = ResumableTransport(transport=inner, backoff_s=0).handle_request(REQUEST)
    reading = Reading(response)
    assert is_asked.wait(PATIENCE_S)
    response.close()
    has_left.set()
    assert type(reading.end()) is httpx.ReadError
    assert late.is_closed
    assert inner.methods == ["POST", "POST", "DELETE"]


def test_a_response_that_comes_after_its_task_has_left_is_closed() -> None:
    late = Body(REST)

    async def read() -> None:
        is_asked, has_left = asyncio.Event(), asyncio.Event()

        class Late(Inner):
            async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
                response = self.handle_request(request)
                if self.methods == ["POST", "POST"]:
                    is_asked.set()
                    await has_left.wait()
                return response

        inner = Late(Body(BEGINNING, httpx.ReadError("x")), late)
        response = await AsyncResumableTransport(transport=inner, backoff_s=0).handle_async_request(REQUEST)
        reader = asyncio.create_task(response.aread())
        await is_asked.wait()
        await response.aclose()
        has_left.set()
        with pytest.raises(httpx.ReadError):
            await reader
        assert inner.methods == ["POST", "POST", "DELETE"]

    asyncio.run(read())
    assert late.is_closed
