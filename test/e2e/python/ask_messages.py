"""Asks what it is told to with `anthropic`, as `serving` says.

    python ask_messages.py BASE_URL API_KEY [OPTIONS]

`events` is the synchronous client, in threads, event by event; `helper` the asynchronous one, with `.stream()`. With
OPTIONS, a JSON object, both send their requests through the transport of `clients/python`.
"""

import json
import sys

from anthropic import Anthropic, AsyncAnthropic
from serving import serve

FINISHES = {"end_turn": "stop", "tool_use": "tool_calls"}


def events(client, request):
    """The events as they come, put together by the application."""
    message, inputs, stopped = None, {}, False
    with client.messages.create(**request, stream=True) as stream:
        for event in stream:
            if event.type == "message_start":
                message = event.message.to_dict()
            elif event.type == "message_delta":
                message["stop_reason"] = event.delta.stop_reason
                message["stop_sequence"] = event.delta.stop_sequence
                message["usage"]["output_tokens"] = event.usage.output_tokens
            elif event.type == "content_block_start":
                if event.index != len(message["content"]):
                    raise RuntimeError(f"block {event.index} is not the next one")
                message["content"].append(event.content_block.to_dict())
            elif event.type == "content_block_delta":
                take(event.delta, message["content"][event.index], event.index, inputs)
            elif event.type == "message_stop":
                stopped = True
    if not stopped:
        raise RuntimeError("the stream ended without its end")
    for index, text in inputs.items():
        message["content"][index]["input"] = json.loads(text)
    return answer(message)


def take(delta, block, index, inputs):
    if delta.type == "text_delta":
        block["text"] += delta.text
    elif delta.type == "thinking_delta":
        block["thinking"] += delta.thinking
    elif delta.type == "signature_delta":
        block["signature"] = delta.signature
    elif delta.type == "input_json_delta":
        inputs[index] = inputs.get(index, "") + delta.partial_json
    else:
        raise RuntimeError(f"a {delta.type} in a block of {block['type']}")


async def helper(client, request):
    """The helper that puts the message together itself."""
    async with client.messages.stream(**request) as stream:
        message = await stream.get_final_message()
    # A stream that was cut has no stop reason, and this client does not mind.
    if message.stop_reason is None:
        raise RuntimeError("the message has no end")
    return answer(message.to_dict())


def answer(message):
    """Who answered and under which name differs from case to case."""
    content = message["content"]
    return {
        "text": "".join(block.get("text", "") for block in content),
        "reasoning": "".join(block.get("thinking", "") for block in content),
        "toolCalls": [
            {"id": block["id"], "name": block["name"], "arguments": block["input"]}
            for block in content
            if block["type"] == "tool_use"
        ],
        "finish": FINISHES.get(message["stop_reason"], message["stop_reason"]),
        "usage": message["usage"],
        "message": {key: value for key, value in message.items() if key not in ("id", "model")},
    }


def resumable(options):
    import httpx2
    from holdfast_client.httpx2 import AsyncResumableTransport, ResumableTransport

    return (
        httpx2.Client(transport=ResumableTransport(**options)),
        httpx2.AsyncClient(transport=AsyncResumableTransport(**options)),
    )


if __name__ == "__main__":
    http_clients = resumable(json.loads(sys.argv[3])) if len(sys.argv) > 3 else (None, None)
    # The SDK adds the version to the address itself.
    options = {"base_url": sys.argv[1].removesuffix("/v1"), "api_key": sys.argv[2], "max_retries": 0}
    serve(
        {"events": events},
        {"helper": helper},
        Anthropic(**options, http_client=http_clients[0]),
        AsyncAnthropic(**options, http_client=http_clients[1]),
    )
