"""Asks what it is told to with `openai`, as `serving` says.

    python ask.py BASE_URL API_KEY [OPTIONS]

`chunks` is the synchronous client, in threads; `helper` the asynchronous one, with `.stream()`; `events` and
`response_helper` are the same with the Responses API. With OPTIONS, a JSON object, both clients send their requests
through the transport of `clients/python`.
"""

import json
import sys

# The SDK would import these with its first request, and threads that import at the same time can block each other forever.
import openai.resources.chat
import openai.resources.responses
from openai import AsyncOpenAI, OpenAI
from serving import serve


def chunks(client, request):
    """The chunks as they come, put together by the application."""
    text, reasoning, calls, finish, usage = "", "", {}, None, None
    with client.chat.completions.create(**request, stream=True) as stream:
        for chunk in stream:
            usage = chunk.usage or usage
            if not chunk.choices:
                continue
            choice = chunk.choices[0]
            text += choice.delta.content or ""
            reasoning += getattr(choice.delta, "reasoning_content", None) or ""
            finish = choice.finish_reason or finish
            for fragment in choice.delta.tool_calls or []:
                call = calls.setdefault(fragment.index, {"id": "", "name": "", "arguments": ""})
                call["id"] += fragment.id or ""
                call["name"] += fragment.function.name or ""
                call["arguments"] += fragment.function.arguments or ""
    return answer(text, [calls[index] for index in sorted(calls)], finish, usage, reasoning)


async def helper(client, request):
    """The helper that puts the message together itself."""
    async with client.chat.completions.stream(**request) as stream:
        completion = await stream.get_final_completion()
    choice = completion.choices[0]
    calls = [
        {"id": call.id, "name": call.function.name, "arguments": call.function.arguments}
        for call in choice.message.tool_calls or []
    ]
    return answer(choice.message.content or "", calls, choice.finish_reason, completion.usage)


def events(client, request):
    """The events as they come, of which the last one has the response."""
    text, response = "", None
    with client.responses.create(**request, stream=True) as stream:
        for event in stream:
            if event.type == "response.output_text.delta":
                text += event.delta
            elif event.type == "response.completed":
                response = event.response
    if response is None:
        raise RuntimeError("the stream ended without a response")
    if text != response.output_text:
        raise RuntimeError(f"what was said piece by piece is {text!r}")
    return response_answer(response)


async def response_helper(client, request):
    """The helper that puts the response together itself."""
    async with client.responses.stream(**request) as stream:
        return response_answer(await stream.get_final_response())


def response_answer(response):
    calls = [
        {"id": item.call_id, "name": item.name, "arguments": item.arguments}
        for item in response.output
        if item.type == "function_call"
    ]
    thoughts = [part.text for item in response.output if item.type == "reasoning" for part in item.summary]
    finish = "tool_calls" if calls else "stop"
    return answer(response.output_text, calls, finish, response.usage, "".join(thoughts))


def answer(text, calls, finish, usage, reasoning=None):
    for call in calls:
        call["arguments"] = json.loads(call["arguments"])
    return {
        "text": text,
        "toolCalls": calls,
        "finish": finish,
        "usage": usage and usage.to_dict(),
        **({} if reasoning is None else {"reasoning": reasoning}),
    }


def resumable(options):
    """One client for each of the two libraries that openai takes clients of."""
    import httpx
    import httpx2

    import holdfast_client
    import holdfast_client.httpx2

    return (
        httpx2.Client(transport=holdfast_client.httpx2.ResumableTransport(**options)),
        httpx.AsyncClient(transport=holdfast_client.AsyncResumableTransport(**options)),
    )


if __name__ == "__main__":
    http_clients = resumable(json.loads(sys.argv[3])) if len(sys.argv) > 3 else (None, None)
    options = {"base_url": sys.argv[1], "api_key": sys.argv[2], "max_retries": 0}
    serve(
        {"chunks": chunks, "events": events},
        {"helper": helper, "response_helper": response_helper},
        OpenAI(**options, http_client=http_clients[0]),
        AsyncOpenAI(**options, http_client=http_clients[1]),
    )
