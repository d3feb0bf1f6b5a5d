"""What the transports do beside telling whole answers, over real sockets."""

from __future__ import annotations

import time
from typing import Any

import httpx
import openai
import pytest
import trio
from answer import ERROR, EVENTS, framed, payloads_of
from libraries import (
    MANNERS,
    RAW_MANNERS,
    Manner,
    Openai,
    OpenaiAsync,
    Raw,
    async_client_of,
    client_of,
    name_of,
    raw,
)
from replicas import Break, Fate, HangUp, Refusal, Replicas, Silence

from holdfast_client import ResumableTransport

WHOLE = framed(EVENTS, "run_0000")
MIDDLE = Break(len(WHOLE) // 2)
HANG = Break(len(WHOLE) // 2, "hang")


class TestWhatIsNotForUs:
    @pytest.mark.parametrize("body", [b'{"stream": false}', b'{"model": "m"}', b"not json", b""])
    def test_goes_through_untouched(self, replicas: Replicas, body: bytes) -> None:
        url = f"{replicas.base_url}/other"
        with client_of(replicas) as client:
            client.post(url, content=body, headers={"Authorization": "Bearer key"})
        with httpx.Client() as plain:
            plain.post(url, content=body, headers={"Authorization": "Bearer key"})
        ours, plains = replicas.requests
        assert (ours.headers, ours.body) == (plains.headers, plains.body)

    def test_a_whole_answer_where_there_is_no_other_replica(self, replicas: Replicas) -> None:
        replicas.plan("q", HangUp())
        with httpx.Client(transport=ResumableTransport()) as client:
            with pytest.raises(httpx.NetworkError):
                client.request(**whole(replicas, "q"))
            headers = client.request(**whole(replicas, "q")).json()["headers"]
        assert not {"holdfast-resume", "idempotency-key"} & set(headers)

    def test_it_is_not_tried_again(self, replicas: Replicas) -> None:
        replicas.stop(0)
        with client_of(replicas) as client, pytest.raises(httpx.ConnectError):
            client.get(f"{replicas.base_url}/models")
        assert replicas.requests == []


def whole(replicas: Replicas, question: str) -> dict[str, Any]:
    message = {"role": "user", "content": question}
    return {**raw(replicas, question), "json": {"model": "m", "messages": [message]}}


class TestWholeAnswers:
    @pytest.mark.parametrize("fate", [HangUp(), Refusal(503), Refusal(503, code="run_taken_over")])
    def test_come_from_the_next_replica(self, fate: Fate, replicas: Replicas) -> None:
        replicas.plan("q", fate)
        with client_of(replicas) as client:
            headers = client.request(**whole(replicas, "q")).json()["headers"]
        assert "holdfast-resume" not in headers
        assert [request.replica for request in replicas.requests] == [0, 1]
        first, second = replicas.requests
        assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
        assert first.body == second.body

    def test_come_from_the_next_replica_without_threads_too(self, replicas: Replicas) -> None:
        replicas.plan("q", HangUp())

        async def ask() -> int:
            async with async_client_of(replicas) as client:
                return (await client.request(**whole(replicas, "q"))).status_code

        assert trio.run(ask) == 200
        assert [request.replica for request in replicas.requests] == [0, 1]

    def test_each_replica_is_asked_once(self, replicas: Replicas) -> None:
        replicas.plan("q", HangUp(), Refusal(503))
        with client_of(replicas) as client:
            response = client.request(**whole(replicas, "q"))
        assert response.status_code == 503
        assert response.json()["error"]["code"] == "shutting_down"
        assert [request.replica for request in replicas.requests] == [0, 1]

    def test_nobody_else_is_asked_when_the_application_would_wait_no_longer(self, replicas: Replicas) -> None:
        replicas.plan("q", Silence())
        with client_of(replicas) as client, pytest.raises(httpx.ReadTimeout):
            client.request(**whole(replicas, "q"), timeout=0.3)
        assert [request.replica for request in replicas.requests] == [0]


class TestFailures:
    @pytest.mark.parametrize("manner", MANNERS, ids=name_of)
    def test_a_replica_that_is_gone(self, manner: Manner, replicas: Replicas) -> None:
        replicas.stop(0)
        assert manner.ask(replicas, "q", endpoints=replicas.roots) == manner.expected

    @pytest.mark.parametrize("manner", RAW_MANNERS, ids=name_of)
    def test_all_replicas_gone(self, manner: Manner, replicas: Replicas) -> None:
        replicas.stop(0)
        replicas.stop(1)
        result = manner.ask(replicas, "q", endpoints=replicas.roots, give_up_s=0.3)
        assert type(result) is manner.module().ConnectError

    @pytest.mark.parametrize("manner", RAW_MANNERS, ids=name_of)
    @pytest.mark.parametrize(
        ("how", "name"),
        [("reset", "ReadError"), ("cut", "RemoteProtocolError"), ("end", "RemoteProtocolError")],
    )
    def test_what_broke_is_told_when_the_run_is_lost(
        self, manner: Manner, how: str, name: str, replicas: Replicas
    ) -> None:
        replicas.plan("q", Break(MIDDLE.at_bytes, how), Refusal(404))
        result = manner.ask(replicas, "q", endpoints=replicas.roots)
        assert type(result) is getattr(manner.module(), name)
        assert result.request.url.path == "/v1/chat/completions"

    @pytest.mark.parametrize("manner", [Openai("httpx"), OpenaiAsync("httpx2")], ids=name_of)
    def test_an_sdk_is_told_in_its_own_terms(self, manner: Manner, replicas: Replicas) -> None:
        replicas.plan("lost", Break(MIDDLE.at_bytes, "end"), Refusal(404))
        replicas.plan("given up", events=[*EVENTS[:3], ERROR])
        replicas.plan("refused", Refusal(401))
        lost, given_up, refused = manner.ask_all(replicas, ["lost", "given up", "refused"])
        assert type(lost) is openai.APIConnectionError
        assert type(given_up) is openai.APIError
        assert given_up.body["type"] == "stream_interrupted"
        assert type(refused) is openai.AuthenticationError

    @pytest.mark.parametrize("manner", RAW_MANNERS, ids=name_of)
    def test_retries_are_not_endless(self, manner: Manner, replicas: Replicas) -> None:
        replicas.plan("q", MIDDLE, *[Refusal(409)] * 2)
        result = manner.ask(replicas, "q", endpoints=replicas.roots, max_retries=2)
        assert type(result) is manner.module().ReadError
        assert len(replicas.requests_of("q")) == 3

    def test_silence_is_a_break_to_a_client_that_does_not_bear_it(self, replicas: Replicas) -> None:
        replicas.plan("q", HANG)
        with client_of(replicas) as client:
            client.timeout = httpx.Timeout(20, read=0.3)
            with client.stream(**raw(replicas, "q")) as response:
                assert payloads_of(response.read()) == EVENTS

    @pytest.mark.parametrize("timeout_s", [None, 15])
    def test_a_replica_that_does_not_answer_at_all_is_not_waited_for_for_ever(
        self, timeout_s: float | None, replicas: Replicas
    ) -> None:
        replicas.plan("q", MIDDLE, HANG)
        with client_of(replicas, idle_s=0.3) as client:
            client.timeout = httpx.Timeout(timeout_s)
            began_s = time.monotonic()
            with client.stream(**raw(replicas, "q")) as response:
                assert payloads_of(response.read()) == EVENTS
            assert time.monotonic() - began_s < 10


class TestResponses:
    def test_heads_are_those_of_the_first(self, replicas: Replicas) -> None:
        replicas.plan("q", MIDDLE)
        with client_of(replicas) as client, client.stream(**raw(replicas, "q")) as response:
            response.read()
        assert response.status_code == 200
        assert response.headers["holdfast-run-id"] == "run_0000"
        assert response.http_version == "HTTP/1.1"
        assert response.is_closed

    def test_the_request_of_the_application_stays_its_own(self, replicas: Replicas) -> None:
        with client_of(replicas) as client:
            request = client.build_request(**raw(replicas, "q"))
            before = list(request.headers.raw)
            client.send(request)
        assert request.headers.raw == before

    def test_connections_are_used_again(self, replicas: Replicas) -> None:
        with client_of(replicas) as client:
            for _ in range(3):
                with client.stream(**raw(replicas, "q")) as response:
                    response.read()
            assert len(replicas.connections) == 1

    def test_whoever_sends_the_requests_can_be_chosen(self, replicas: Replicas) -> None:
        class Counting(httpx.HTTPTransport):
            sent = 0
            closed = False

            def handle_request(self, request: httpx.Request) -> httpx.Response:
                self.sent += 1
                return super().handle_request(request)

            def close(self) -> None:
                self.closed = True
                super().close()

        replicas.plan("q", MIDDLE)
        counting = Counting()
        client = client_of(replicas, transport=counting)
        assert payloads_of(client.request(**raw(replicas, "q")).content) == EVENTS
        client.close()
        assert (counting.sent, counting.closed) == (2, True)

    def test_one_url_for_all_replicas(self, replicas: Replicas) -> None:
        replicas.plan("q", HangUp(), MIDDLE, HangUp())
        assert Raw("httpx").ask(replicas, "q") == EVENTS
        assert {request.replica for request in replicas.requests} == {0}

    def test_on_trio(self, replicas: Replicas) -> None:
        replicas.plan("whole", MIDDLE, HangUp())
        replicas.plan("left", HANG)

        async def ask() -> None:
            async with async_client_of(replicas) as client:
                async with client.stream(**raw(replicas, "whole")) as response:
                    assert payloads_of(await response.aread()) == EVENTS
                with trio.move_on_after(0.2):
                    async with client.stream(**raw(replicas, "left")) as response:
                        await response.aread()

        trio.run(ask)
        assert replicas.cancelled == ["run_0001"]
