"""A task: which requests are its steps, and which tools run."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable

import httpx
import pytest

from holdfast_client import (
    AsyncResumableTransport,
    LedgerError,
    ResultNotKeptError,
    ResumableTransport,
    Task,
    ToolContext,
    UnknownCallError,
)

CALL = {
    "id": "call_1",
    "function": {"name": "send_mail", "arguments": '{"to":"Ann","copies":[1,{"b":2,"a":1}]}'},
}
ARGS = json.loads(CALL["function"]["arguments"])

Answer = Callable[[httpx.Request, dict[str, Any]], httpx.Response]


def runs(request: httpx.Request, _fields: dict[str, Any]) -> httpx.Response:
    return httpx.Response(200, json={"outcome": "run" if request.url.path.endswith("/claim") else "done"})


def says(**fields: Any) -> Answer:
    return lambda _request, _fields: httpx.Response(200, json=fields)


def refusal(status: int, code: str) -> httpx.Response:
    return httpx.Response(status, json={"error": {"message": f"It is {code}.", "code": code}})


class Asked:
    """What a task has asked Holdfast about its calls, and the step that was made before."""

    def __init__(self, answer: Answer, *, is_async: bool = False, **options: Any) -> None:
        self.answer = answer
        self.requests: list[httpx.Request] = []
        self.task = Task("T 23", session="first")
        self.is_async = is_async
        options = {"backoff_s": 0.0, "give_up_s": 0.05, **options}
        inner = httpx.MockTransport(self._handle)
        step = {
            "url": "http://a:1/v1/chat/completions",
            "headers": {"Authorization": "Bearer key", "X-User": "ann", "Accept": "text/event-stream"},
            "json": {"model": "m", "messages": []},
        }
        if is_async:

            async def ask() -> httpx.Response:
                transport = AsyncResumableTransport(transport=inner, task=self.task, **options)
                async with httpx.AsyncClient(transport=transport) as client:
                    return await client.post(**step)

            self.step = asyncio.run(ask()).json()
        else:
            transport = ResumableTransport(transport=inner, task=self.task, **options)
            with httpx.Client(transport=transport) as client:
                self.step = client.post(**step).json()

    def _handle(self, request: httpx.Request) -> httpx.Response:
        if "/holdfast/" not in request.url.path:
            return httpx.Response(200, json=dict(request.headers))
        self.requests.append(request)
        return self.answer(request, json.loads(request.content or b"null"))

    def tool(self, call: object, run: Callable[[Any, ToolContext], Any], **options: Any) -> Any:
        if not self.is_async:
            return self.task.tool(call, run, **options)
        return asyncio.run(self.task.async_tool(call, run, **options))

    def say(self, verb: str, *reason: str, **options: int) -> dict[str, Any]:
        if not self.is_async:
            return getattr(self.task, verb)(*reason, **options)  # type: ignore[no-any-return]
        return asyncio.run(getattr(self.task, f"async_{verb}")(*reason, **options))

    def set_terms(self, **terms: Any) -> dict[str, Any]:
        if not self.is_async:
            return self.task.set_terms(**terms)
        return asyncio.run(self.task.async_set_terms(**terms))

    @property
    def bodies(self) -> list[Any]:
        return [json.loads(request.content or b"null") for request in self.requests]

    @property
    def actions(self) -> list[str]:
        return [f"{request.method} {request.url.path.split('/')[-1]}" for request in self.requests]

    @property
    def keys(self) -> list[str]:
        return [
            request.url.path.split("/")[-2]
            for request in self.requests
            if request.url.path.endswith("/claim")
        ]


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def asked(request: pytest.FixtureRequest) -> Callable[..., Asked]:
    return lambda answer, **options: Asked(answer, is_async=request.param, **options)


def never(_args: Any, _context: ToolContext) -> Any:
    pytest.fail("the tool ran")


def test_requests_of_its_transport_are_steps(asked: Callable[..., Asked]) -> None:
    step = asked(runs).step
    assert (step["holdfast-task"], step["holdfast-task-session"]) == ("T 23", "first")
    assert step["authorization"] == "Bearer key"
    assert Task("T").session != Task("T").session


def test_a_tool_runs_when_its_call_is_claimed_and_its_result_is_kept(asked: Callable[..., Asked]) -> None:
    one = asked(runs)
    contexts: list[ToolContext] = []

    def tool(args: Any, context: ToolContext) -> Any:
        assert args == ARGS
        contexts.append(context)
        return {"sent": True}

    assert one.tool(CALL, tool, hold_s=0.007) == {"sent": True}
    assert [len(context.idempotency_key) for context in contexts] == [64]
    assert one.actions == ["POST claim", "PUT result"]
    claim, result = one.bodies
    assert claim == {"claim": claim["claim"], "hold_ms": 7, "repeat": "never"}
    assert result == {"claim": claim["claim"], "result": {"sent": True}}
    request = one.requests[0]
    assert str(request.url).startswith("http://a:1/holdfast/v1/tasks/T%2023/calls/")
    # The credential and whatever else names the owner, and nothing that was the step's alone.
    assert (request.headers["authorization"], request.headers["x-user"]) == ("Bearer key", "ann")
    assert not {"accept", "holdfast-task", "idempotency-key"} & set(request.headers)


def test_a_coroutine_function_is_awaited() -> None:
    async def tool(args: Any, _context: ToolContext) -> Any:
        await asyncio.sleep(0)
        return args["to"]

    assert Asked(runs, is_async=True).tool(CALL, tool) == "Ann"


def test_a_tool_that_has_run_does_not_run_again(asked: Callable[..., Asked]) -> None:
    assert asked(says(outcome="done", result=[1])).tool(CALL, never) == [1]
    assert asked(says(outcome="done", result=None)).tool(CALL, never) is None
    with pytest.raises(ResultNotKeptError):
        asked(says(outcome="done")).tool(CALL, never)


def test_a_result_that_is_too_long_is_kept_by_its_process(asked: Callable[..., Asked]) -> None:
    def answer(request: httpx.Request, fields: dict[str, Any]) -> httpx.Response:
        return refusal(413, "result_too_large") if "result" in fields else runs(request, fields)

    one = asked(answer)
    assert one.tool(CALL, lambda *_: "long") == "long"
    assert one.bodies[-1] == {"claim": one.bodies[0]["claim"]}


def test_another_process_is_waited_for(asked: Callable[..., Asked]) -> None:
    answers = [{"outcome": "busy", "retry_after_ms": 1}] * 2 + [{"outcome": "done", "result": "sent"}]
    one = asked(lambda *_: httpx.Response(200, json=answers.pop(0)))
    assert one.tool(CALL, never) == "sent"
    assert len({body["claim"] for body in one.bodies}) == 1


def test_a_tool_that_may_have_run_waits_for_word(asked: Callable[..., Asked]) -> None:
    released: list[bool] = []

    def answer(request: httpx.Request, fields: dict[str, Any]) -> httpx.Response:
        if request.url.path.endswith("/release"):
            released.append(True)
        unknown = {"outcome": "unknown", "claim": "the lost one"}
        return runs(request, fields) if released else httpx.Response(200, json=unknown)

    one = asked(answer)
    with pytest.raises(UnknownCallError, match="send_mail") as raised:
        one.tool(CALL, never)
    release(one, raised.value)
    assert one.bodies[-1] == {"claim": "the lost one"}
    assert one.tool(CALL, lambda *_: "sent") == "sent"
    assert len(set(one.keys)) == 1


def test_a_tool_that_has_run_after_all_need_not_be_released(asked: Callable[..., Asked]) -> None:
    answers = [
        httpx.Response(200, json={"outcome": "unknown", "claim": "a slow one"}),
        httpx.Response(409, json={"error": {"message": "It has a result.", "code": "call_done"}}),
        httpx.Response(200, json={"outcome": "done", "result": "sent"}),
        httpx.Response(409, json={"error": {"message": "It does not stand.", "code": "call_not_claimed"}}),
    ]
    one = asked(lambda *_: answers.pop(0))
    with pytest.raises(UnknownCallError) as raised:
        one.tool(CALL, never)
    release(one, raised.value)
    assert one.tool(CALL, never) == "sent"
    with pytest.raises(LedgerError, match="does not stand"):
        release(one, raised.value)


def test_a_tool_that_has_raised_may_have_had_its_effect(asked: Callable[..., Asked]) -> None:
    one = asked(runs)
    with pytest.raises(ZeroDivisionError):
        one.tool(CALL, lambda *_: 1 / 0)
    with pytest.raises(UnknownCallError) as raised:
        one.tool(CALL, never)
    assert one.actions == ["POST claim"]
    release(one, raised.value)
    assert one.bodies[-1] == {"claim": one.bodies[0]["claim"]}
    assert one.tool(CALL, lambda *_: "sent") == "sent"


def test_a_tool_with_a_key_is_released_when_it_raises(asked: Callable[..., Asked]) -> None:
    one = asked(runs)
    keys: list[str] = []

    def tool(_args: Any, context: ToolContext) -> str:
        keys.append(context.idempotency_key)
        if len(keys) == 1:
            raise ConnectionError
        return "sent"

    with pytest.raises(ConnectionError):
        one.tool(CALL, tool, repeat="with_key")
    assert one.actions[-1] == "POST release"
    assert one.tool(CALL, tool, repeat="with_key") == "sent"
    assert len(set(keys)) == 1
    assert one.bodies[0]["repeat"] == "with_key"


def test_a_tool_without_an_effect_runs_without_a_question(asked: Callable[..., Asked]) -> None:
    one = asked(runs)
    assert one.tool(CALL, lambda *_: "read", repeat="always") == "read"
    assert one.requests == []


def test_a_tool_does_not_run_where_holdfast_cannot_be_asked(asked: Callable[..., Asked]) -> None:
    def down(request: httpx.Request, _fields: dict[str, Any]) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    with pytest.raises(LedgerError):
        asked(down).tool(CALL, never)
    one = asked(lambda *_: refusal(404, "task_not_found"))
    with pytest.raises(LedgerError, match="It is task_not_found") as raised:
        one.tool(CALL, never)
    assert raised.value.code == "task_not_found"
    assert len(one.requests) == 1
    with pytest.raises(TypeError, match="transport that has the task"):
        Task("T").tool(CALL, never)


def test_a_claim_is_the_same_when_its_answer_was_lost(asked: Callable[..., Asked]) -> None:
    one: Asked

    def answer(request: httpx.Request, fields: dict[str, Any]) -> httpx.Response:
        count = len(one.requests)
        if count == 1:
            return refusal(503, "store_unavailable")
        if count == 3:
            raise httpx.ReadError("reset", request=request)
        return runs(request, fields)

    one = asked(answer, give_up_s=5.0)
    assert one.tool(CALL, lambda *_: "sent") == "sent"
    assert one.actions == ["POST claim", "POST claim", "PUT result", "PUT result"]
    assert len({body["claim"] for body in one.bodies}) == 1


@pytest.mark.parametrize(
    "call",
    [
        {"call_id": "call_1", "name": "send_mail", "arguments": CALL["function"]["arguments"]},
        {"id": "call_1", "name": "send_mail", "input": ARGS},
        {"id": "call_1", "name": "send_mail", "args": {"copies": [1, {"a": 1, "b": 2}], "to": "Ann"}},
        SimpleNamespace(id="call_1", function=SimpleNamespace(**CALL["function"])),
        # Responses give their calls an id of their own besides.
        SimpleNamespace(
            id="fc_7", call_id="call_1", name="send_mail", arguments=CALL["function"]["arguments"]
        ),
    ],
)
def test_a_call_is_the_same_in_every_form(call: object) -> None:
    one = Asked(runs)
    other = Asked(runs)
    one.tool(CALL, lambda *_: None)
    other.tool(call, lambda *_: None)
    assert one.keys == other.keys


def test_calls_differ_by_what_they_say_and_by_how_often_it_was_said() -> None:
    one, again = Asked(runs), Asked(runs)
    calls = [
        CALL,
        {"id": "call_2", "name": "send_mail", "input": ARGS},
        {"id": "call_1", "name": "call_ann", "input": ARGS},
        {"id": "call_1", "name": "send_mail", "input": {}},
        CALL,
    ]
    for call in calls:
        one.tool(call, lambda *_: None)
    for call in [CALL, CALL]:
        again.tool(call, lambda *_: None)
    assert len(set(one.keys)) == 5
    assert again.keys == [one.keys[0], one.keys[4]]


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        ({"id": "a"}, TypeError, "tool call with a name"),
        ({"id": "a", "name": "send_mail", "arguments": '{"to'}, ValueError, "send_mail"),
    ],
)
def test_what_is_no_call_is_refused(call: object, error: type[Exception], words: str) -> None:
    one = Asked(runs)
    with pytest.raises(error, match=words):
        one.tool(call, never)
    assert one.requests == []


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"id": ""}, ValueError),
        ({"id": "x" * 257}, ValueError),
        ({"id": 7}, TypeError),
        ({"session": ""}, ValueError),
        ({"parent": ""}, ValueError),
        ({"steps_total": 0}, ValueError),
        ({"steps_total": 1.5}, TypeError),
        ({"deadline_s": 0.0}, ValueError),
        ({"budget_tokens": True}, TypeError),
    ],
)
def test_names_are_checked(options: dict[str, Any], error: type[Exception]) -> None:
    name = next(iter(options))
    with pytest.raises(error, match=f"^{name} must be"):
        Task(**{"id": "T", **options})
    with pytest.raises(TypeError, match="task must be a Task"):
        ResumableTransport(task="T")  # type: ignore[arg-type]


def release(one: Asked, error: UnknownCallError) -> None:
    if one.is_async:

        async def release_now() -> None:
            await error.async_release()

        asyncio.run(release_now())
    else:
        error.release()


def test_what_is_said_of_a_task_goes_where_its_requests_went(asked: Callable[..., Asked]) -> None:
    one = asked(says(id="T 23", status="paused", reason="lunch", steps=2))
    assert one.say("show") == {"id": "T 23", "status": "paused", "reason": "lunch", "steps": 2}
    assert one.say("pause", "lunch")["status"] == "paused"
    one.say("resume")
    one.say("complete", "done")
    one.say("cancel", ttl_s=60)
    one.set_terms(steps_total=7)
    assert [f"{request.method} {request.url}" for request in one.requests] == [
        "GET http://a:1/holdfast/v1/tasks/T%2023",
        "POST http://a:1/holdfast/v1/tasks/T%2023/pause",
        "POST http://a:1/holdfast/v1/tasks/T%2023/resume",
        "POST http://a:1/holdfast/v1/tasks/T%2023/complete",
        "POST http://a:1/holdfast/v1/tasks/T%2023/cancel",
        "PUT http://a:1/holdfast/v1/tasks/T%2023",
    ]
    assert one.bodies == [
        None,
        {"reason": "lunch"},
        {},
        {"reason": "done"},
        {"ttl_s": 60},
        {"steps_total": 7},
    ]
    assert {request.headers["authorization"] for request in one.requests} == {"Bearer key"}


def test_what_is_said_of_a_task_may_be_refused(asked: Callable[..., Asked]) -> None:
    one = asked(lambda _request, _fields: refusal(410, "task_ended"))
    with pytest.raises(LedgerError) as raised:
        one.say("pause")
    assert raised.value.code == "task_ended"
    with pytest.raises(TypeError, match="to pause the task, make a request"):
        Task("T").pause()


def test_what_a_task_asks_is_what_the_openapi_document_describes(asked: Callable[..., Asked]) -> None:
    document = json.loads((Path(__file__).parents[3] / "holdfast.openapi.json").read_text())
    lost = asked(says(outcome="unknown", claim="lost"))
    with pytest.raises(UnknownCallError) as unknown:
        lost.tool(CALL, never)
    if lost.is_async:
        asyncio.run(unknown.value.async_release())
    else:
        unknown.value.release()
    one = asked(runs)
    one.tool(CALL, lambda _args, _context: {"sent": True}, repeat="with_key", hold_s=5)
    for verb in ("show", "pause", "resume", "complete", "cancel"):
        one.say(verb)
    with pytest.raises(TypeError, match="there is no term deadline, step_total"):
        one.set_terms(step_total=7, deadline=1)
    one.set_terms(description="x", steps_total=7, deadline_at=1_800_000_000, budget_tokens=100)
    operations = set()
    for request in [*lost.requests, *one.requests]:
        path = request.url.path.split("/")
        for template, described in document["paths"].items():
            parts = template.split("/")
            is_same = len(parts) == len(path) and all(
                part == given or part.startswith("{") for part, given in zip(parts, path)
            )
            operation = described.get(request.method.lower()) if is_same else None
            if operation is None:
                continue
            operations.add(operation["operationId"])
            if "requestBody" in operation:
                schema = operation["requestBody"]["content"]["application/json"]["schema"]
                fields = json.loads(request.content)
                assert set(schema.get("required", [])) <= set(fields) <= set(schema["properties"])
    assert operations == {
        "claimCall",
        "keepResult",
        "releaseCall",
        "showTask",
        "pauseTask",
        "resumeTask",
        "completeTask",
        "cancelTask",
        "putTask",
    }


def test_a_request_of_a_task_names_its_terms() -> None:
    one = Task("T", session="s", parent="T1", steps_total=7, deadline_s=0.5, budget_tokens=100)
    assert one.headers == {
        "Holdfast-Task": "T",
        "Holdfast-Task-Session": "s",
        "Holdfast-Parent-Task": "T1",
        "Holdfast-Task-Steps-Total": "7",
        "Holdfast-Task-Deadline-Ms": "500",
        "Holdfast-Task-Budget-Tokens": "100",
    }


SIGNALLED = """
import asyncio, time
import httpx
from holdfast_client import AsyncResumableTransport, ResumableTransport, Task

def answer(request):
    print(request.method, request.url.path, request.content.decode(), flush=True)
    return httpx.Response(200, json={"id": "T", "object": "holdfast.task"})

task = Task("T")
step = "http://a:1/v1/chat/completions"
"""
SYNC = """
with httpx.Client(transport=ResumableTransport(transport=httpx.MockTransport(answer), task=task)) as client:
    client.post(step, json={})
    task.pause_on_signals()
    print("ready", flush=True)
    time.sleep(60)
"""
ASYNC = """
async def main():
    transport = AsyncResumableTransport(transport=httpx.MockTransport(answer), task=task)
    async with httpx.AsyncClient(transport=transport) as client:
        await client.post(step, json={})
        task.async_pause_on_signals()
        print("ready", flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_process_that_a_signal_ends_has_paused_its_task_before(
    number: signal.Signals, *, is_async: bool
) -> None:
    source = SIGNALLED + (ASYNC if is_async else SYNC)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, env=environment) as agent:
        assert agent.stdout
        assert b"ready\n" in iter(agent.stdout.readline, b"")
        agent.send_signal(number)
        said = agent.stdout.read().decode()
        assert said == f'POST /holdfast/v1/tasks/T/pause {{"reason": "{number.name}"}}\n'
        assert agent.wait() == -number
