"""Everything the transports can be used with, behind one way to ask."""

from __future__ import annotations

import asyncio
import importlib
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any, NamedTuple, Union

import httpx
import pytest
from answer import CALL, EVENTS, TEXT, USAGE, payloads_of
from replicas import Replicas

from holdfast_client import AsyncResumableTransport, ResumableTransport

CONCURRENCY = 32


class Told(NamedTuple):
    """What an SDK made of an answer."""

    text: str
    calls: list[dict[str, Any]]
    finish: str | None
    total_tokens: int | None


TOLD = Told(TEXT, [CALL], "tool_calls", USAGE["total_tokens"])

#: What was told, in the terms of the manner in which it was asked; or what was raised.
Result = Union[list[str], Told, Exception]


class Manner:
    """One way to ask. `expected` is what it makes of the whole answer."""

    expected: Result
    needs: tuple[str, ...] = ()

    def __init__(self, library: str) -> None:
        self.library = library

    @property
    def name(self) -> str:
        return f"{type(self).__name__}-{self.library}"

    def ask(self, replicas: Replicas, question: str, **options: Any) -> Result:
        (result,) = self.ask_all(replicas, [question], **options)
        return result

    def ask_all(self, replicas: Replicas, questions: list[str], **options: Any) -> list[Result]:
        """Many at a time, with one client and these options of the transport."""
        raise NotImplementedError

    def module(self) -> ModuleType:
        """The library; the test is skipped where it or anything else is not installed."""
        for name in self.needs:
            pytest.importorskip(name)
        return pytest.importorskip(self.library)

    def transports(self) -> ModuleType:
        name = "holdfast_client" if self.library == "httpx" else f"holdfast_client.{self.library}"
        return importlib.import_module(name)

    def sync_client(self, options: dict[str, Any]) -> Any:
        module = self.module()
        return module.Client(transport=self.transports().ResumableTransport(**options), timeout=20)

    def async_client(self, options: dict[str, Any]) -> Any:
        module = self.module()
        return module.AsyncClient(transport=self.transports().AsyncResumableTransport(**options), timeout=20)


def in_threads(questions: list[str], ask: Callable[[str], Result]) -> list[Result]:
    def result(question: str) -> Result:
        try:
            return ask(question)
        except Exception as error:
            return error

    with ThreadPoolExecutor(CONCURRENCY) as executor:
        return list(executor.map(result, questions))


async def in_tasks(questions: list[str], ask: Callable[[str], Any]) -> list[Result]:
    turns = asyncio.Semaphore(CONCURRENCY)

    async def result(question: str) -> Result:
        async with turns:
            try:
                return await ask(question)
            except Exception as error:
                return error

    return list(await asyncio.gather(*map(result, questions)))


def request(question: str) -> dict[str, Any]:
    return {"model": "m", "stream": True, "messages": [{"role": "user", "content": question}]}


def raw(replicas: Replicas, question: str, path: str = "/chat/completions") -> dict[str, Any]:
    return {
        "method": "POST",
        "url": f"{replicas.base_url}{path}",
        "headers": {"Authorization": "Bearer key"},
        "json": request(question),
    }


def client_of(replicas: Replicas, **options: Any) -> httpx.Client:
    return httpx.Client(transport=ResumableTransport(endpoints=replicas.roots, **options), timeout=20)


def async_client_of(replicas: Replicas, **options: Any) -> httpx.AsyncClient:
    transport = AsyncResumableTransport(endpoints=replicas.roots, **options)
    return httpx.AsyncClient(transport=transport, timeout=20)


class Raw(Manner):
    expected = EVENTS
    path = "/chat/completions"

    def at(self, path: str) -> Raw:
        """The same on another wire."""
        manner = type(self)(self.library)
        manner.path = path
        return manner

    def ask_all(self, replicas: Replicas, questions: list[str], **options: Any) -> list[Result]:
        with self.sync_client(options) as client:

            def ask(question: str) -> Result:
                with client.stream(**raw(replicas, question, self.path)) as response:
                    return payloads_of(b"".join(response.iter_bytes()))

            return in_threads(questions, ask)


class RawAsync(Raw):
    def ask_all(self, replicas: Replicas, questions: list[str], **options: Any) -> list[Result]:
        async def ask_all() -> list[Result]:
            async with self.async_client(options) as client:

                async def ask(question: str) -> Result:
                    async with client.stream(**raw(replicas, question, self.path)) as response:
                        return payloads_of(b"".join([piece async for piece in response.aiter_bytes()]))

                return await in_tasks(questions, ask)

        return asyncio.run(ask_all())


class Listener:
    """Puts chunks of openai-python together as an application does."""

    def __init__(self) -> None:
        self._text = ""
        self._calls: dict[int, dict[str, str]] = {}
        self._finish: str | None = None
        self._total_tokens: int | None = None

    def hear(self, chunk: Any) -> None:
        if chunk.usage:
            self._total_tokens = chunk.usage.total_tokens
        for choice in chunk.choices:
            self._text += choice.delta.content or ""
            self._finish = choice.finish_reason or self._finish
            for fragment in choice.delta.tool_calls or []:
                call = self._calls.setdefault(fragment.index, {"id": "", "name": "", "arguments": ""})
                call["id"] += fragment.id or ""
                call["name"] += fragment.function.name or ""
                call["arguments"] += fragment.function.arguments or ""

    def told(self) -> Told:
        calls = [{**call, "arguments": json.loads(call["arguments"])} for call in self._calls.values()]
        return Told(self._text, calls, self._finish, self._total_tokens)


def told_in(completion: Any) -> Told:
    (choice,) = completion.choices
    calls = [
        {"id": call.id, "name": call.function.name, "arguments": json.loads(call.function.arguments)}
        for call in choice.message.tool_calls or []
    ]
    usage = completion.usage
    return Told(choice.message.content, calls, choice.finish_reason, usage and usage.total_tokens)


class Openai(Manner):
    expected = TOLD
    needs = ("openai",)

    def ask_all(self, replicas: Replicas, questions: list[str], **options: Any) -> list[Result]:
        from openai import OpenAI

        http_client = self.sync_client(options)
        with OpenAI(
            base_url=replicas.base_url, api_key="key", max_retries=0, http_client=http_client
        ) as client:
            return in_threads(questions, lambda question: self.told(client, question))

    def told(self, client: Any, question: str) -> Told:
        listener = Listener()
        with client.chat.completions.create(**request(question)) as stream:
            for chunk in stream:
                listener.hear(chunk)
        return listener.told()


class OpenaiStream(Openai):
    def told(self, client: Any, question: str) -> Told:
        asked = {name: value for name, value in request(question).items() if name != "stream"}
        with client.chat.completions.stream(**asked) as stream:
            return told_in(stream.get_final_completion())


class OpenaiAsync(Manner):
    expected = TOLD
    needs = ("openai",)

    def ask_all(self, replicas: Replicas, questions: list[str], **options: Any) -> list[Result]:
        from openai import AsyncOpenAI

        async def ask_all() -> list[Result]:
            http_client = self.async_client(options)
            async with AsyncOpenAI(
                base_url=replicas.base_url, api_key="key", max_retries=0, http_client=http_client
            ) as client:
                return await in_tasks(questions, lambda question: self.told(client, question))

        return asyncio.run(ask_all())

    async def told(self, client: Any, question: str) -> Told:
        listener = Listener()
        async with await client.chat.completions.create(**request(question)) as stream:
            async for chunk in stream:
                listener.hear(chunk)
        return listener.told()


class OpenaiAsyncStream(OpenaiAsync):
    async def told(self, client: Any, question: str) -> Told:
        asked = {name: value for name, value in request(question).items() if name != "stream"}
        async with client.chat.completions.stream(**asked) as stream:
            return told_in(await stream.get_final_completion())


def told_by(message: Any) -> Told:
    calls = [
        {"id": call["id"], "name": call["name"], "arguments": call["args"]} for call in message.tool_calls
    ]
    finish = message.response_metadata.get("finish_reason")
    return Told(message.content, calls, finish, message.usage_metadata["total_tokens"])


class Langchain(Manner):
    expected = TOLD
    needs = ("langchain_openai",)

    def ask_all(self, replicas: Replicas, questions: list[str], **options: Any) -> list[Result]:
        with self.sync_client(options) as client:
            model = self.model(replicas, http_client=client)

            def ask(question: str) -> Told:
                chunks = list(model.stream(question))
                return told_by(sum(chunks[1:], chunks[0]))

            return in_threads(questions, ask)

    def model(self, replicas: Replicas, **client: Any) -> Any:
        from langchain_openai import ChatOpenAI

        return ChatOpenAI(
            model="m", base_url=replicas.base_url, api_key="key", max_retries=0, stream_usage=True, **client
        )


class LangchainAsync(Langchain):
    def ask_all(self, replicas: Replicas, questions: list[str], **options: Any) -> list[Result]:
        async def ask_all() -> list[Result]:
            async with self.async_client(options) as client:
                model = self.model(replicas, http_async_client=client)

                async def ask(question: str) -> Told:
                    chunks = [chunk async for chunk in model.astream(question)]
                    return told_by(sum(chunks[1:], chunks[0]))

                return await in_tasks(questions, ask)

        return asyncio.run(ask_all())


LIBRARIES = ("httpx", "httpx2")
RAW_MANNERS = [kind(library) for kind in (Raw, RawAsync) for library in LIBRARIES]
SDK_MANNERS = [
    kind(library)
    for kind in (Openai, OpenaiStream, OpenaiAsync, OpenaiAsyncStream, Langchain, LangchainAsync)
    for library in LIBRARIES
]
MANNERS = RAW_MANNERS + SDK_MANNERS


def name_of(manner: Manner) -> str:
    return manner.name
