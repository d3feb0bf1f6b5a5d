"""A task that several processes work on, one after the other."""

from __future__ import annotations

import secrets
import threading
from collections.abc import AsyncGenerator, Awaitable, Generator
from contextlib import suppress
from dataclasses import dataclass
from inspect import isawaitable
from signal import Signals
from typing import TYPE_CHECKING, Any, Callable, TypeVar

import httpx

from ._at_once import run_at_once
from ._callers import AsyncCaller, Caller, SyncCaller
from ._calls import Claim, Place, Repeat, TaskRequests, TaskTerms
from ._errors import LedgerError, ResultNotKeptError, UnknownCallError
from ._seen_task import TaskProgress
from ._signals import SIGNALS, async_on_signals, on_signals
from ._tool_call import ToolCall, digest_of
from ._watch import TaskWatch

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._transport import Transport

Result = TypeVar("Result")

HOLD_S = 60.0
_NAME_CHARACTERS_MAX = 256
#: How often to ask whether another process has finished running the tool.
_POLL_S = 0.5


@dataclass(frozen=True)
class ToolContext:
    #: The same in every process that runs this call, for a service that supports such keys.
    idempotency_key: str


class Task:
    """If its process is lost, the next one doesn't repeat the finished work.

        invitations = Task("invitations-2026-11")
        client = OpenAI(base_url=…, http_client=httpx2.Client(transport=ResumableTransport(task=invitations)))
        sent = invitations.tool(call, lambda args, context: send_mail(args["to"], context.idempotency_key))

    The requests of a transport that has the task are its steps; see docs/tasks.md.
    """

    def __init__(
        self,
        id: str,
        *,
        session: str | None = None,
        parent: str | None = None,
        steps_total: int | None = None,
        deadline_s: float | None = None,
        budget_tokens: int | None = None,
    ) -> None:
        """`session` names this process among those that work on the task. Default: a random name.

        parent: The task that this one belongs to.
        steps_total: How many steps it takes, as far as you know. For this and the following, the values of the
            task's first request apply.
        deadline_s: How long after its first request it accepts new steps.
        budget_tokens: It accepts no new steps once its answers, with their prompts, have used this many tokens.

        Raises `TypeError` or `ValueError`, which names the wrong option.
        """
        self.id = _name("id", id)
        self.session = _name("session", secrets.token_hex(16) if session is None else session)
        self._headers = {"Holdfast-Task": self.id, "Holdfast-Task-Session": self.session}
        if parent is not None:
            self._headers["Holdfast-Parent-Task"] = _name("parent", parent)
        for option, header, value in (
            ("steps_total", "Steps-Total", steps_total),
            ("deadline_s", "Deadline-Ms", None if deadline_s is None else round(deadline_s * 1000)),
            ("budget_tokens", "Budget-Tokens", budget_tokens),
        ):
            if value is not None:
                self._headers[f"Holdfast-Task-{header}"] = _count(option, value)
        self._place: Place | None = None
        self._lock = threading.Lock()
        #: By the digest of a call's content: which of the calls with the same content are taken.
        self._taken: dict[str, list[bool]] = {}
        #: The claims of calls whose tools raised, by their keys.
        self._raised: dict[str, str] = {}

    @property
    def headers(self) -> dict[str, str]:
        """Headers that make a request a step of the task, for a client without such a transport."""
        return dict(self._headers)

    def tool(
        self,
        call: object,
        run: Callable[[Any, ToolContext], Result],
        *,
        repeat: Repeat = "never",
        hold_s: float = HOLD_S,
    ) -> Result:
        """Runs the tool unless another process of the task has, and returns its result, as JSON represents it.

        call: A call from the answer to a request of the task: an object or dictionary of chat completions, responses,
            messages or LangChain.
        repeat: Whether the tool may run again if it's unknown whether it ran, because its process was lost or it
            raised. `never`: an `UnknownCallError` leaves that to you. `with_key`: it may, since it passes its
            `idempotency_key` to the service that has the effect. `always`: it has no effect, and runs every time.
        hold_s: How long the tool takes at most. After that, other processes treat its outcome as unknown.

        Raises `UnknownCallError`, `ResultNotKeptError`, `LedgerError` if Holdfast can't be asked, or the tool's own
        error.
        """

        async def run_now(args: Any, context: ToolContext) -> Result:
            return run(args, context)

        return run_at_once(self._tool(ToolCall.of(call), run_now, repeat, hold_s, SyncCaller()))

    async def async_tool(
        self,
        call: object,
        run: Callable[[Any, ToolContext], Result | Awaitable[Result]],
        *,
        repeat: Repeat = "never",
        hold_s: float = HOLD_S,
    ) -> Result:
        """`tool` for asynchronous clients. `run` may be a coroutine function."""

        async def run_async(args: Any, context: ToolContext) -> Result:
            result = run(args, context)
            return await result if isawaitable(result) else result

        return await self._tool(ToolCall.of(call), run_async, repeat, hold_s, AsyncCaller())

    def show(self) -> dict[str, Any]:
        """The task's state: the document in docs/tasks.md.

        This and the following methods raise a `LedgerError` if Holdfast refuses or can't be asked, and you can call
        them once you've made a request with a transport that has the task.
        """
        return run_at_once(self._requests("show the task", SyncCaller()).show())

    def progress(self) -> Generator[TaskProgress, None, None]:
        """The task's progress at once, and whenever it changes, until the task is over.

            for progress in invitations.progress():
                bar.update(progress.steps_done, progress.steps_total)

        A deleted task ends as `cancelled`. Closing the generator closes its connection.
        """
        watch = TaskWatch(self._requests("watch the task", SyncCaller()))
        try:
            while (progress := run_at_once(watch.next())) is not None:
                yield progress
        finally:
            run_at_once(watch.close())

    def pause(self, reason: str | None = None) -> dict[str, Any]:
        """Until you resume the task, it accepts no new steps from any process.

        Its requests get a 423, unless their steps have answers.
        """
        return self._say("pause", reason)

    def resume(self) -> dict[str, Any]:
        return self._say("resume", None)

    def complete(self, reason: str | None = None, *, ttl_s: int | None = None) -> dict[str, Any]:
        """Ends the task: it accepts no new steps. `ttl_s`: how long Holdfast keeps it then, if less than others."""
        return self._say("complete", reason, ttl_s)

    def cancel(self, reason: str | None = None, *, ttl_s: int | None = None) -> dict[str, Any]:
        """Ends the task, and cancels its answers under way."""
        return self._say("cancel", reason, ttl_s)

    def set_terms(self, **terms: Unpack[TaskTerms]) -> dict[str, Any]:
        """Replaces all of the task's terms with these. `deadline_at`: in seconds since the Unix epoch."""
        return run_at_once(self._requests("set the terms of the task", SyncCaller()).set_terms(terms))

    def pause_on_signals(self, *signals: Signals) -> None:
        """Pauses the task on a signal, SIGINT and SIGTERM unless you name others.

        The signal's previous handler gets it then, and usually ends the process. Call this in the main thread of a
        program with a synchronous client.
        """
        on_signals(signals or SIGNALS, self.pause)

    def async_pause_on_signals(self, *signals: Signals) -> None:
        """`pause_on_signals` for asynchronous clients. Call it while asyncio's event loop runs."""
        async_on_signals(signals or SIGNALS, self.async_pause)

    async def async_set_terms(self, **terms: Unpack[TaskTerms]) -> dict[str, Any]:
        return await self._requests("set the terms of the task", AsyncCaller()).set_terms(terms)

    async def async_show(self) -> dict[str, Any]:
        return await self._requests("show the task", AsyncCaller()).show()

    async def async_progress(self) -> AsyncGenerator[TaskProgress, None]:
        watch = TaskWatch(self._requests("watch the task", AsyncCaller()))
        try:
            while (progress := await watch.next()) is not None:
                yield progress
        finally:
            await watch.close()

    async def async_pause(self, reason: str | None = None) -> dict[str, Any]:
        return await self._async_say("pause", reason)

    async def async_resume(self) -> dict[str, Any]:
        return await self._async_say("resume", None)

    async def async_complete(self, reason: str | None = None, *, ttl_s: int | None = None) -> dict[str, Any]:
        return await self._async_say("complete", reason, ttl_s)

    async def async_cancel(self, reason: str | None = None, *, ttl_s: int | None = None) -> dict[str, Any]:
        return await self._async_say("cancel", reason, ttl_s)

    def _say(self, verb: str, reason: str | None, ttl_s: int | None = None) -> dict[str, Any]:
        return run_at_once(self._requests(f"{verb} the task", SyncCaller()).say(verb, reason, ttl_s))

    async def _async_say(self, verb: str, reason: str | None, ttl_s: int | None = None) -> dict[str, Any]:
        return await self._requests(f"{verb} the task", AsyncCaller()).say(verb, reason, ttl_s)

    def _join(self, transport: Transport[Any], request: httpx.Request) -> None:
        """Makes the request a step of the task."""
        self._place = Place.of(transport, request) or self._place
        request.headers.update(self.headers)

    async def _tool(
        self,
        call: ToolCall,
        run: Callable[[Any, ToolContext], Awaitable[Result]],
        repeat: Repeat,
        hold_s: float,
        caller: Caller,
    ) -> Result:
        nth = self._take(call.digest)
        try:
            key = digest_of([call.digest, nth])
            context = ToolContext(digest_of([self.id, key]))
            if repeat == "always":
                return await run(call.args, context)
            requests = self._requests(f"run the tool {call.name!r}", caller)
            claim = Claim(secrets.token_hex(16), hold_s, repeat)
            done = await self._claim(call.name, key, claim, requests)
            if done is not None:
                return done[0]  # type: ignore[no-any-return]
            return await self._run(key, claim, requests, lambda: run(call.args, context))
        except BaseException:
            with self._lock:
                self._taken[call.digest][nth] = False
            raise

    def _take(self, digest: str) -> int:
        """A process that starts the task over reaches calls with the same content in the same order."""
        with self._lock:
            taken = self._taken.setdefault(digest, [])
            nth = taken.index(False) if False in taken else len(taken)
            taken[nth : nth + 1] = [True]
            return nth

    def _requests(self, what: str, caller: Caller) -> TaskRequests:
        if self._place is None:
            raise TypeError(f"to {what}, make a request with a transport that has the task first")
        return TaskRequests(self._place, self.id, caller)

    async def _claim(self, name: str, key: str, claim: Claim, requests: TaskRequests) -> tuple[Any] | None:
        """The result of a call that ran; None if the tool has to run."""
        raised = self._raised.get(key)
        if raised is not None:
            raise self._unknown(name, key, raised)
        while True:
            answer = await requests.claim(key, claim)
            outcome = answer.get("outcome")
            if outcome == "run":
                return None
            if outcome == "done":
                if "result" not in answer:
                    raise ResultNotKeptError(name)
                return (answer["result"],)
            if outcome != "busy":
                raise self._unknown(name, key, str(answer.get("claim")))
            await requests.caller.wait(min(float(answer.get("retry_after_ms", 0)) / 1000, _POLL_S))

    async def _run(
        self,
        key: str,
        claim: Claim,
        requests: TaskRequests,
        run: Callable[[], Awaitable[Result]],
    ) -> Result:
        try:
            result = await run()
        except BaseException:
            if claim.repeat == "never":
                self._raised[key] = claim.name
            else:
                # If the release fails, other processes wait until the claim expires.
                with suppress(LedgerError):
                    await requests.release(key, claim.name)
            raise
        try:
            await requests.keep_result(key, claim.name, {"result": result})
        except LedgerError as error:
            # The tool ran, and its result is valid. If recording it fails, others treat the call as unknown.
            if error.code == "result_too_large":
                with suppress(LedgerError):
                    await requests.keep_result(key, claim.name, {})
        return result

    def _unknown(self, name: str, key: str, claim: str) -> UnknownCallError:
        async def release(caller: Caller) -> None:
            try:
                await self._requests(f"release {name!r}", caller).release(key, claim)
            except LedgerError as error:
                # It did run, so there's a result, and nothing to release.
                if error.code != "call_done":
                    raise
            self._raised.pop(key, None)

        return UnknownCallError(
            name, lambda: run_at_once(release(SyncCaller())), lambda: release(AsyncCaller())
        )


def _name(option: str, value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{option} must be a text, not {value!r}")
    if not 1 <= len(value) <= _NAME_CHARACTERS_MAX:
        raise ValueError(f"{option} must be a text of 1 to {_NAME_CHARACTERS_MAX} characters")
    return value


def _count(option: str, value: object) -> str:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{option} must be a whole number, not {value!r}")
    if value < 1:
        raise ValueError(f"{option} must be at least 1")
    return str(value)
