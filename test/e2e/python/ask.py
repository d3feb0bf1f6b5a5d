"""Asks what it is told to on standard input, one JSON object per line, and answers on standard output.

    python ask.py BASE_URL API_KEY [OPTIONS]
    {"id", "manner": "chunks" | "helper", "request"} -> {"id", "answer"} | {"id", "error": {"name", "message"}}

`chunks` is the synchronous client, in threads; `helper` the asynchronous one, with `.stream()`. With OPTIONS, a JSON
object, both send their requests through the transport of `clients/python`.
"""

import asyncio
import json
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

from openai import AsyncOpenAI, OpenAI

CONCURRENCY = 16

# From here on: what the interpreter says of the libraries' own imports is not about our streams.
warnings.simplefilter("error")

output = threading.Lock()


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


def serve(line):
    task = json.loads(line)
    try:
        if task["manner"] == "chunks":
            result = {"answer": chunks(client, task["request"])}
        else:
            asked = asyncio.run_coroutine_threadsafe(helper(async_client, task["request"]), loop)
            result = {"answer": asked.result()}
    except Exception as error:  # Whatever the client raises, warnings included, is the result.
        result = {"error": {"name": type(error).__name__, "message": str(error)}}
    with output:
        print(json.dumps({"id": task["id"], **result}), flush=True)


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


http_clients = resumable(json.loads(sys.argv[3])) if len(sys.argv) > 3 else (None, None)
options = {"base_url": sys.argv[1], "api_key": sys.argv[2], "max_retries": 0}
client = OpenAI(**options, http_client=http_clients[0])
async_client = AsyncOpenAI(**options, http_client=http_clients[1])
loop = asyncio.new_event_loop()
loop_thread = threading.Thread(target=loop.run_forever)
loop_thread.start()

with ThreadPoolExecutor(CONCURRENCY) as executor:
    for line in sys.stdin:
        executor.submit(serve, line)

client.close()
asyncio.run_coroutine_threadsafe(async_client.close(), loop).result()
loop.call_soon_threadsafe(loop.stop)
loop_thread.join()
loop.close()
