"""A run without a network: what is told to it, and what it wants."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Union

import httpx

from holdfast_client._endpoints import Endpoints
from holdfast_client._options import Options
from holdfast_client._request import WireRequest
from holdfast_client._resumption import Resumption
from holdfast_client._steps import (
    Call,
    Deliver,
    Drop,
    Interruption,
    Open,
    PassOn,
    Read,
    ReadWhole,
    Reply,
    Send,
    Sleep,
)
from holdfast_client._whole import WholeAnswer

A, B = "http://a:1", "http://b:2"
RUN = "run_1"
RESET = ConnectionError("reset")
REFUSED = ConnectionError("refused")


class TruncatedError(Exception):
    pass


class ImpatientError(Exception):
    pass


def asked(path: str = "/v1/chat/completions", *, stream: bool = True, **headers: str) -> WireRequest:
    """A request to the first replica."""
    body = json.dumps({"stream": stream}).encode()
    request = WireRequest.of(f"{A}{path}", httpx.Headers(headers).raw, body)
    assert request
    return request


class Response:
    """What a replica answers, and what is read of it; ends with an error, or without one."""

    def __init__(
        self,
        status: int = 200,
        *pieces: bytes,
        end: Exception | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        ours = {"holdfast-run-id": RUN, "content-type": "text/event-stream; charset=utf-8"}
        self.reply = Reply(status, headers if headers is not None else ours if status == 200 else {})
        self.pieces = list(pieces)
        self.end = end


def refusal(status: int, code: str = "shutting_down", **headers: str) -> Response:
    body = json.dumps({"error": {"code": code}}).encode()
    return Response(status, body, headers={name.replace("_", "-"): value for name, value in headers.items()})


Script = Sequence[Union[Response, Exception]]


class Course:
    """Takes every step; a response that is not in the script is an error of the test."""

    def __init__(
        self, script: Script, *, path: str = "/v1/chat/completions", stream: bool = True, **options: object
    ) -> None:
        checked = Options.check(**{"endpoints": [A, B], **options})
        request = asked(path, stream=stream, Authorization="Bearer key")
        self.now_s = 1000.0
        endpoints = Endpoints(checked.endpoints, self._clock)
        self.course = (
            Resumption(request, checked, endpoints, TruncatedError, clock=self._clock, jitter=lambda: 0.0)
            if stream
            else WholeAnswer(request, checked, endpoints, ImpatientError)
        )
        self.calls: list[Call] = []
        self.sleeps_s: list[float] = []
        self.delivered = b""
        self.opened: int | None = None
        self.passed_on: int | None = None
        self.error: Exception | None = None
        self._script = list(script)
        self._at_hand: Response | None = None
        self._take()

    @property
    def places(self) -> list[str]:
        """Replica and path of every request."""
        return [f"{call.url[7]} {httpx.URL(call.url).path}" for call in self.calls]

    def body(self, index: int) -> dict[str, object]:
        return json.loads(self.calls[index].body)

    def header(self, index: int, name: str) -> str | None:
        return httpx.Headers(self.calls[index].headers).get(name)

    def _clock(self) -> float:
        return self.now_s

    def _take(self) -> None:
        steps = self.course.steps()
        outcome: Reply | bytes | None = None
        failure: Exception | None = None
        while True:
            try:
                step = steps.throw(Interruption(failure)) if failure else steps.send(outcome)
            except StopIteration:
                break
            except Exception as error:
                self.error = error
                break
            outcome, failure = None, None
            if isinstance(step, Send):
                assert self._at_hand is None, "the response before it was not closed"
                self.calls.append(step.call)
                coming = self._script.pop(0)
                if isinstance(coming, Exception):
                    failure = coming
                else:
                    self._at_hand, outcome = coming, coming.reply
            elif isinstance(step, (Read, ReadWhole)):
                assert self._at_hand is not None
                if isinstance(step, ReadWhole):
                    outcome, failure = b"".join(self._at_hand.pieces), self._at_hand.end
                elif self._at_hand.pieces:
                    outcome = self._at_hand.pieces.pop(0)
                else:
                    failure = self._at_hand.end
            elif isinstance(step, Drop):
                self._at_hand = None
            elif isinstance(step, Sleep):
                assert self._at_hand is None, "a response was left open meanwhile"
                self.sleeps_s.append(step.delay_s)
                self.now_s += step.delay_s
            elif isinstance(step, Deliver):
                assert step.data
                self.delivered += step.data
            elif isinstance(step, Open):
                assert self._at_hand is not None
                self.opened = self._at_hand.reply.status
            else:
                assert isinstance(step, PassOn)
                assert self._at_hand is not None
                self.passed_on = self._at_hand.reply.status
        assert not self._script, "something was not asked for"
