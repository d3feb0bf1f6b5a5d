"""An application that wants no more of an answer."""

from __future__ import annotations

import asyncio
import signal
import threading
import time

import httpx
import openai
import pytest
from answer import EVENTS, framed
from libraries import MANNERS, Manner, async_client_of, client_of, name_of, raw
from reading import Reading
from replicas import PATIENCE_S, Break, HangUp, Replicas, Silence

WHOLE = framed(EVENTS, "run_0000")
MIDDLE = Break(len(WHOLE) // 2)
HANG = Break(len(WHOLE) // 2, "hang")


def test_ends_the_run(replicas: Replicas) -> None:
    replicas.plan("q", HANG)
    with client_of(replicas) as client, client.stream(**raw(replicas, "q")) as response:
        next(response.iter_bytes())
    replicas.wait_until(lambda: replicas.left == 1)
    assert replicas.cancelled == ["run_0000"]
    assert replicas.requests[-1].headers["authorization"] == "Bearer key"


def test_ends_the_run_where_it_is_now(replicas: Replicas) -> None:
    replicas.plan("q", MIDDLE, Break(len(WHOLE) // 4, "hang"))
    with client_of(replicas) as client, client.stream(**raw(replicas, "q")) as response:
        pieces = response.iter_bytes()
        while len(replicas.requests) < 2:
            next(pieces)
    replicas.wait_until(lambda: replicas.left == 1)
    assert [request.replica for request in replicas.requests] == [0, 1, 1]


def test_leaves_the_run_if_so_told(replicas: Replicas) -> None:
    replicas.plan("q", HANG)
    options = {"cancel_on_close": False}
    with client_of(replicas, **options) as client, client.stream(**raw(replicas, "q")) as response:
        next(response.iter_bytes())
    replicas.wait_until(lambda: replicas.left == 1)
    assert replicas.cancelled == []


@pytest.mark.parametrize("manner", MANNERS, ids=name_of)
def test_a_run_that_has_ended_is_not_cancelled(manner: Manner, replicas: Replicas) -> None:
    assert manner.ask(replicas, "q", endpoints=replicas.roots) == manner.expected
    assert replicas.cancelled == []


def test_an_sdk_that_leaves(replicas: Replicas) -> None:
    replicas.plan("q", HANG)
    with openai.OpenAI(base_url=replicas.base_url, api_key="key", http_client=client_of(replicas)) as client:
        message = {"role": "user", "content": "q"}
        with client.chat.completions.create(model="m", messages=[message], stream=True) as stream:
            next(stream)
    replicas.wait_until(lambda: replicas.left == 1)
    assert replicas.cancelled == ["run_0000"]


def test_from_another_thread(replicas: Replicas) -> None:
    replicas.plan("q", HANG)
    # The system does not wake whoever reads from a socket that is closed; the replica does.
    replicas.when_cancelled("hang up")
    with client_of(replicas) as client, client.stream(**raw(replicas, "q")) as response:
        reading = Reading(response)
        assert reading.begun.wait(PATIENCE_S)
        response.close()
        assert type(reading.end()) is httpx.ReadError
    assert [request.method for request in replicas.requests] == ["POST", "DELETE"]


def test_between_two_tries(replicas: Replicas) -> None:
    replicas.plan("q", MIDDLE, HangUp(), HangUp())
    options = {"backoff_s": 60, "backoff_max_s": 60}
    with client_of(replicas, **options) as client, client.stream(**raw(replicas, "q")) as response:
        reading = Reading(response)
        while not reading.is_waiting:
            time.sleep(0.01)
        began_s = time.monotonic()
        response.close()
        assert type(reading.end()) is httpx.ReadError
        assert time.monotonic() - began_s < 10
    assert len(replicas.requests_of("q")) == 1


def test_a_client_that_is_closed_sends_no_more(replicas: Replicas) -> None:
    replicas.plan("q", HANG)
    client = client_of(replicas)
    with client.stream(**raw(replicas, "q")) as response:
        pieces = response.iter_bytes()
        next(pieces)
        client.close()
        with pytest.raises(httpx.ReadError):
            next(pieces)
    assert len(replicas.requests) == 1


def test_a_task_that_is_cancelled(replicas: Replicas) -> None:
    replicas.plan("q", HANG)

    async def leave() -> None:
        async with async_client_of(replicas) as client:
            shown = asyncio.Event()

            async def read() -> None:
                async with client.stream(**raw(replicas, "q")) as response:
                    async for _ in response.aiter_bytes():
                        shown.set()

            reader = asyncio.create_task(read())
            await shown.wait()
            reader.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reader

    asyncio.run(leave())
    replicas.wait_until(lambda: replicas.left == 1)
    assert replicas.cancelled == ["run_0000"]


def test_another_task_leaves(replicas: Replicas) -> None:
    replicas.plan("q", MIDDLE, HangUp())
    client = async_client_of(replicas, backoff_s=60, backoff_max_s=60)

    async def leave() -> None:
        async with client, client.stream(**raw(replicas, "q")) as response:
            reader = asyncio.create_task(response.aread())
            while not response.num_bytes_downloaded:
                await asyncio.sleep(0.01)
            await response.aclose()
            with pytest.raises(httpx.ReadError):
                await asyncio.wait_for(reader, 10)

    asyncio.run(leave())
    assert replicas.cancelled == ["run_0000"]


def test_before_the_response(replicas: Replicas) -> None:
    replicas.plan("q", HangUp())
    client = async_client_of(replicas, backoff_s=60, backoff_max_s=60)

    async def leave() -> None:
        async with client:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(client.request(**raw(replicas, "q")), 0.5)

    asyncio.run(leave())
    # It may have begun all the same: only its connection is known to have ended.
    assert replicas.cancelled == ["run_0000"]


def test_a_task_that_is_cancelled_before_the_response(replicas: Replicas) -> None:
    replicas.plan("q", Silence())

    async def leave() -> None:
        async with async_client_of(replicas) as client:
            reader = asyncio.create_task(client.request(**raw(replicas, "q")))
            while not replicas.requests:
                await asyncio.sleep(0.01)
            reader.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reader

    asyncio.run(leave())
    replicas.wait_until(lambda: replicas.left == 1)
    assert replicas.cancelled == ["run_0000"]
    assert [request.replica for request in replicas.requests] == [0, 0]


def test_an_interrupt_before_the_response(replicas: Replicas) -> None:
    replicas.plan("q", Silence())
    main_thread = threading.get_ident()

    def interrupt() -> None:
        replicas.wait_until(lambda: len(replicas.requests) == 1)
        signal.pthread_kill(main_thread, signal.SIGINT)

    with client_of(replicas) as client:
        threading.Thread(target=interrupt, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            client.request(**raw(replicas, "q"))
    replicas.wait_until(lambda: replicas.left == 1)
    assert replicas.cancelled == ["run_0000"]


def test_leaves_the_run_before_the_response_if_so_told(replicas: Replicas) -> None:
    replicas.plan("q", Silence())

    async def leave() -> None:
        async with async_client_of(replicas, cancel_on_close=False) as client:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(client.request(**raw(replicas, "q")), 0.5)

    asyncio.run(leave())
    replicas.wait_until(lambda: replicas.left == 1)
    assert len(replicas.requests) == 1


def test_is_not_held_up_by_a_replica_that_does_not_listen(replicas: Replicas) -> None:
    replicas.plan("q", HANG)
    replicas.when_cancelled("ignore")
    with client_of(replicas) as client:
        began_s = time.monotonic()
        with client.stream(**raw(replicas, "q")) as response:
            next(response.iter_bytes())
        assert time.monotonic() - began_s < 10
