from __future__ import annotations

import pytest

from holdfast_client._wires import wire_at


@pytest.mark.parametrize(
    ("path", "wire", "prefix"),
    [
        ("/v1/chat/completions", "/chat/completions", ""),
        ("/v1/completions", "/completions", ""),
        ("/v1/messages", "/messages", ""),
        ("/v1/responses", "/responses", ""),
        ("/v1/responses/", "/responses", ""),
        ("/messages", "/messages", ""),
        ("/llm/v1/chat/completions", "/chat/completions", "/llm"),
        ("/llm/chat/completions", "/chat/completions", "/llm"),
        ("/chat/v1/completions", "/completions", "/chat"),
    ],
)
def test_the_wire_of_a_path(path: str, wire: str, prefix: str) -> None:
    at = wire_at(path)
    assert at
    assert (at[0].path, at[1]) == (wire, prefix)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/embeddings",
        "/v1/chat/completions/chatcmpl-1",
        "/v1/messages/count_tokens",
        "/v1/responses/resp_1/cancel",
        "/v1/my-responses",
        "/",
    ],
)
def test_there_is_none(path: str) -> None:
    assert wire_at(path) is None


LAST = {
    "/chat/completions": [
        "[DONE]",
        "[DONE] ",
        '{"error": {"message": "m"}}',
        '{"choices": [], "error": "m"}',
    ],
    "/completions": ["[DONE]", '{"error": {"message": "m"}}'],
    "/messages": ['{"type":"message_stop"}', '{ "type": "message_stop" }', '{"type":"error","error":{}}'],
    "/responses": [
        *(f'{{"type":"response.{end}"}}' for end in ("completed", "incomplete", "cancelled", "failed")),
        '{"type":"error","message":"m"}',
        '{"type":"error","error":null,"message":"m"}',
        '{"type":"response.failed","error":{"message":"m"}}',
    ],
}
NOT_LAST = {
    "/chat/completions": [
        '{"error": null}',
        '"error"',
        '{"error',
        '[{"error": 1}]',
        '{"type":"message_stop"}',
    ],
    "/completions": ['{"text":"[DONE]"}', '{"text":"\\"error\\""}'],
    "/messages": [
        "[DONE]",
        '{"type":"message_delta"}',
        '{"type":"content_block_delta","delta":{"text":"\\"message_stop\\""}}',
        '{"type":"content_block_delta","delta":{"type":"error"}}',
        '{"error":{"message":"m"}}',
        '"message_stop"',
        '{"type":"message_stop"',
    ],
    "/responses": [
        "[DONE]",
        '{"type":"response.created","response":{"error":null}}',
        '{"type":"response.output_text.done","text":"\\"response.completed\\""}',
        '["response.completed"]',
        '{"type":"error","error":{"message":"m"}}',
    ],
}


@pytest.mark.parametrize(("path", "payload"), [(path, each) for path in LAST for each in LAST[path]])
def test_the_last_event_of_an_answer(path: str, payload: str) -> None:
    at = wire_at(path)
    assert at
    assert at[0].is_last(payload) is True


@pytest.mark.parametrize(("path", "payload"), [(path, each) for path in NOT_LAST for each in NOT_LAST[path]])
def test_any_other_event(path: str, payload: str) -> None:
    at = wire_at(path)
    assert at
    assert at[0].is_last(payload) is False
