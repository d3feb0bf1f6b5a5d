"""What Holdfast is asked about a task and its tool calls."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from random import random
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote, urlsplit

import httpx

from ._answer import UNAVAILABLE
from ._budget import Budget, retry_after_s
from ._errors import LedgerError
from ._steps import Headers
from ._wires import wire_at

if TYPE_CHECKING:
    from ._transport import Transport

Repeat = Literal["never", "with_key", "always"]

#: What of a request is for it alone, and not for others with the same credential.
_OF_ONE_REQUEST = re.compile(
    rb"content-|accept|transfer-|holdfast-|idempotency-key$|last-event-id$|host$|connection$", re.IGNORECASE
)


@dataclass(frozen=True)
class Place:
    """Where Holdfast is, and with which credential it is asked."""

    transport: Transport[Any]
    root: str
    headers: Headers

    @staticmethod
    def of(transport: Transport[Any], request: httpx.Request) -> Place | None:
        """As a request shows; None if it is on none of the wires."""
        url = urlsplit(str(request.url))
        at = wire_at(url.path)
        if not at:
            return None
        _, prefix = at
        headers = [(name, value) for name, value in request.headers.raw if not _OF_ONE_REQUEST.match(name)]
        return Place(transport, f"{url.scheme}://{url.netloc}{prefix}", headers)


@dataclass(frozen=True)
class Claim:
    name: str
    hold_s: float
    repeat: Repeat


class Caller:
    """Sends requests and waits, asynchronously or at once."""

    async def send(self, place: Place, request: httpx.Request) -> httpx.Response:
        """The response with its body."""
        raise NotImplementedError

    async def wait(self, delay_s: float) -> None:
        raise NotImplementedError


class TaskRequests:
    """Each request may be sent several times: it means the same every time. All of them raise `LedgerError`."""

    def __init__(self, place: Place, task: str, caller: Caller) -> None:
        self.caller = caller
        self._place = place
        self._path = f"/holdfast/v1/tasks/{quote(task, safe='')}"

    async def show(self) -> dict[str, Any]:
        return await self._ask("GET", "", None)

    async def say(self, verb: str, reason: str | None) -> dict[str, Any]:
        """`verb`: as it is in the path."""
        return await self._ask("POST", f"/{verb}", {} if reason is None else {"reason": reason})

    async def set_terms(self, terms: Mapping[str, Any]) -> dict[str, Any]:
        return await self._ask("PUT", "", terms)

    async def claim(self, key: str, claim: Claim) -> Mapping[str, Any]:
        hold_ms = round(claim.hold_s * 1000)
        fields = {"claim": claim.name, "hold_ms": hold_ms, "repeat": claim.repeat}
        return await self._ask("POST", f"/calls/{key}/claim", fields)

    async def keep_result(self, key: str, claim: str, result: Mapping[str, Any]) -> None:
        await self._ask("PUT", f"/calls/{key}/result", {"claim": claim, **result})

    async def release(self, key: str, claim: str) -> None:
        await self._ask("POST", f"/calls/{key}/release", {"claim": claim})

    async def _ask(self, method: str, path: str, fields: Mapping[str, Any] | None) -> dict[str, Any]:
        transport = self._place.transport
        endpoints, options, library = transport._endpoints, transport._options, transport._library
        budget = Budget(options, time.monotonic, random)
        limits_s = dict.fromkeys(("connect", "read", "write", "pool"), options.idle_s)
        headers = list(self._place.headers)
        if fields is not None:
            headers.append((b"content-type", b"application/json"))
        root = endpoints.first(self._place.root)
        while True:
            asked_again_s: float | None = None
            cause: Exception | None = None
            request = library.request(
                method,
                f"{root}{self._path}{path}",
                headers=headers,
                content=b"" if fields is None else json.dumps(fields).encode(),
                extensions={"timeout": limits_s},
            )
            try:
                response = await self.caller.send(self._place, request)
            except library.interruptions as error:
                cause = error
            else:
                answer = _fields_of(response.content)
                if response.status_code == 200:
                    endpoints.answered(root)
                    return answer
                refusal = _refusal(response.status_code, answer)
                if response.status_code not in UNAVAILABLE:
                    raise refusal
                cause = refusal
                asked_again_s = retry_after_s(response.headers, time.time())
            endpoints.failed(root)
            wait_s = budget.next_s(asked_again_s, is_closed_door=True)
            if wait_s is None:
                raise LedgerError("Holdfast could not be asked about the task.") from cause
            await self.caller.wait(wait_s)
            root = endpoints.after(root)


def _refusal(status: int, fields: Mapping[str, Any]) -> LedgerError:
    error = fields.get("error")
    if not isinstance(error, dict):
        return LedgerError(f"The answer was {status}.")
    return LedgerError(str(error.get("message")), error.get("code"))


def _fields_of(body: bytes) -> dict[str, Any]:
    try:
        fields = json.loads(body)
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}
