"""The requests to Holdfast about a task and its tool calls."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from random import random
from typing import TYPE_CHECKING, Any, Literal, TypedDict, TypeVar
from urllib.parse import quote, urlsplit

import httpx

from ._answer import UNAVAILABLE
from ._budget import Budget, retry_after_s
from ._callers import Caller, Connection
from ._errors import LedgerError
from ._options import Options
from ._steps import Headers
from ._wires import wire_at

if TYPE_CHECKING:
    from ._transport import Transport

Answer = TypeVar("Answer")
Repeat = Literal["never", "with_key", "always"]

_TOO_MANY_REQUESTS = 429

#: Headers that belong to one request only, and not to others with the same credential.
_OF_ONE_REQUEST = re.compile(
    rb"content-|accept|transfer-|holdfast-|idempotency-key$|last-event-id$|host$|connection$", re.IGNORECASE
)


@dataclass(frozen=True)
class Place:
    """Where Holdfast is, and the credential to ask it with."""

    transport: Transport[Any]
    root: str
    headers: Headers

    @staticmethod
    def of(transport: Transport[Any], request: httpx.Request) -> Place | None:
        """Derived from a request; None if that is on none of the wires."""
        url = urlsplit(str(request.url))
        at = wire_at(url.path)
        if not at:
            return None
        _, prefix = at
        headers = [(name, value) for name, value in request.headers.raw if not _OF_ONE_REQUEST.match(name)]
        return Place(transport, f"{url.scheme}://{url.netloc}{prefix}", headers)


class TaskTerms(TypedDict, total=False):
    """A task's description and limits."""

    #: For people; at most 1000 characters.
    description: str | None
    #: How many steps it takes, as far as you know.
    steps_total: int | None
    #: When it stops accepting new steps, in seconds since the Unix epoch.
    deadline_at: float | None
    #: It accepts no new steps once its answers, with their prompts, have used this many tokens.
    budget_tokens: int | None


@dataclass(frozen=True)
class Claim:
    name: str
    hold_s: float
    repeat: Repeat


@dataclass(frozen=True)
class OpenedEvents:
    connection: Connection
    #: The root of the replica that sends them.
    root: str


class TaskRequests:
    """Every request is idempotent, and may be sent several times. All of them raise `LedgerError`."""

    def __init__(self, place: Place, task: str, caller: Caller) -> None:
        self.caller = caller
        self._place = place
        self._path = f"/holdfast/v1/tasks/{quote(task, safe='')}"

    async def show(self) -> dict[str, Any]:
        return await self._ask("GET", "", None)

    async def say(self, verb: str, reason: str | None, ttl_s: int | None = None) -> dict[str, Any]:
        """`verb`: the last part of the path."""
        said = {"reason": reason, "ttl_s": ttl_s}
        return await self._ask(
            "POST", f"/{verb}", {name: value for name, value in said.items() if value is not None}
        )

    async def set_terms(self, terms: TaskTerms) -> dict[str, Any]:
        """Raises `TypeError` for an unknown name. Terms that are omitted no longer apply."""
        unknown = terms.keys() - TaskTerms.__optional_keys__
        if unknown:
            raise TypeError(f"there is no term {', '.join(sorted(unknown))}")
        fields = {name: value for name, value in terms.items() if value is not None}
        return await self._ask("PUT", "", fields)

    async def claim(self, key: str, claim: Claim) -> Mapping[str, Any]:
        hold_ms = round(claim.hold_s * 1000)
        fields = {"claim": claim.name, "hold_ms": hold_ms, "repeat": claim.repeat}
        return await self._ask("POST", f"/calls/{key}/claim", fields)

    async def keep_result(self, key: str, claim: str, result: Mapping[str, Any]) -> None:
        await self._ask("PUT", f"/calls/{key}/result", {"claim": claim, **result})

    async def release(self, key: str, claim: str) -> None:
        await self._ask("POST", f"/calls/{key}/release", {"claim": claim})

    @property
    def options(self) -> Options:
        return self._place.transport._options

    @property
    def interruptions(self) -> tuple[type[Exception], ...]:
        """The exceptions of a connection that failed a request."""
        return self._place.transport._library.interruptions

    async def open_events(self, last_id: bytes | None, budget: Budget) -> OpenedEvents:
        """The events after the one with this id."""
        last = [(b"last-event-id", last_id)] if last_id else []

        async def take(connection: Connection, root: str) -> OpenedEvents:
            return OpenedEvents(connection, root)

        return await self._in_turn("GET", "/events", last, b"", take, budget)

    async def _ask(self, method: str, path: str, fields: Mapping[str, Any] | None) -> dict[str, Any]:
        async def take(connection: Connection, _root: str) -> dict[str, Any]:
            return _fields_of(await connection.read_whole())

        headers = [] if fields is None else [(b"content-type", b"application/json")]
        content = b"" if fields is None else json.dumps(fields).encode()
        budget = Budget(self.options, time.monotonic, random)
        return await self._in_turn(method, path, headers, content, take, budget)

    async def _in_turn(
        self,
        method: str,
        path: str,
        headers: Headers,
        content: bytes,
        take: Callable[[Connection, str], Awaitable[Answer]],
        budget: Budget,
    ) -> Answer:
        """Asks one replica after another, until `take` has an answer from one of them."""
        place = self._place
        transport = place.transport
        library, endpoints = transport._library, transport._endpoints
        limits_s = dict.fromkeys(("connect", "read", "write", "pool"), self.options.idle_s)
        root = endpoints.first(place.root)
        while True:
            request = library.request(
                method,
                f"{root}{self._path}{path}",
                headers=[*place.headers, *headers],
                content=content,
                extensions={"timeout": limits_s},
            )
            try:
                connection = await self.caller.open(transport, request)
                response = connection.response
                status = response.status_code
                if status == 200:
                    answer = await take(connection, root)
                    endpoints.answered(root)
                    return answer
                refusal = _refusal(status, _fields_of(await connection.read_whole()))
            except self.interruptions as error:
                await self.move_on(root, budget, error, is_closed_door=True)
            else:
                is_closed_door = status in UNAVAILABLE
                # A replica may still count a lost stream for a moment.
                if not is_closed_door and status != _TOO_MANY_REQUESTS:
                    raise refusal
                asked_s = retry_after_s(response.headers, time.time())
                await self.move_on(root, budget, refusal, asked_s, is_closed_door=is_closed_door)
            root = endpoints.after(root)

    async def move_on(
        self,
        root: str,
        budget: Budget,
        cause: Exception | None,
        asked_s: float | None = None,
        *,
        is_closed_door: bool = False,
    ) -> None:
        """Waits until it's time to ask another replica than this one. Raises `LedgerError` when the budget is spent."""
        self._place.transport._endpoints.failed(root)
        wait_s = budget.next_s(asked_s, is_closed_door=is_closed_door)
        if wait_s is None:
            raise LedgerError("Holdfast could not be asked about the task.") from cause
        await self.caller.wait(wait_s)


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
