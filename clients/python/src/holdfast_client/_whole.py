"""The course of a request without a stream."""

from __future__ import annotations

from ._answer import UNAVAILABLE, is_turned_away
from ._endpoints import Endpoints
from ._options import Options
from ._request import RunRequests, WireRequest
from ._steps import Call, Drop, Interruption, PassOn, ReadWhole, Reply, Send, Steps


class WholeAnswer:
    """The answer of the first replica that accepts the request. Asks each once, without a wait and with the same key.

    The application gets the last one's answer or error, and its SDK may start over.
    """

    def __init__(
        self, request: WireRequest, options: Options, endpoints: Endpoints, impatient: type[Exception]
    ) -> None:
        """`impatient`: raised when the application's own timeout is over. Then no other replica is asked."""
        self._requests = RunRequests(request, options)
        self._endpoints = endpoints
        self._root = endpoints.first(request.root)
        self._impatient = impatient

    def steps(self) -> Steps:
        asked: set[str] = set()
        while True:
            asked.add(self._root)
            error: Exception | None = None
            try:
                reply = yield Send(self._requests.original(self._root))
                assert isinstance(reply, Reply)
                body = (yield ReadWhole()) if reply.status in UNAVAILABLE else None
                if not isinstance(body, bytes) or not is_turned_away(body):
                    self._endpoints.answered(self._root)
                    break
            except Interruption as interruption:
                error = interruption.error
            if error and isinstance(error, self._impatient):
                raise error
            self._endpoints.failed(self._root)
            self._root = self._endpoints.after(self._root)
            if self._root not in asked:
                yield Drop()
            elif error:
                raise error
            else:
                break
        yield PassOn()

    def cancellation(self, *, after_fault: bool = False) -> Call | None:
        """Nothing continues without its connection."""
        return None
