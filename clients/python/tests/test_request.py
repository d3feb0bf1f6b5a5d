from __future__ import annotations

import json

import httpx
import pytest

from holdfast_client._options import Options
from holdfast_client._request import RunRequests, WireRequest, may_be_ours
from holdfast_client._steps import Call

A, B = "http://a:1", "http://b:2"
HEADERS = {
    "Host": "a:1",
    "Authorization": "Bearer key",
    "OpenAI-Organization": "org",
    "Content-Type": "application/json",
    "Content-Length": "16",
    "Accept-Encoding": "gzip",
}


def requests(
    url: str = f"{A}/v1/chat/completions", body: bytes = b'{"stream": true}', **more: str
) -> RunRequests:
    headers = httpx.Headers({**HEADERS, **{name.replace("_", "-"): value for name, value in more.items()}})
    request = WireRequest.of(url, headers.raw, body)
    assert request
    return RunRequests(request, Options.check(idle_s=7))


def headers_of(call: Call) -> httpx.Headers:
    return httpx.Headers(call.headers)


@pytest.mark.parametrize(
    ("url", "at_home", "elsewhere"),
    [
        (f"{A}/v1/chat/completions", f"{A}/v1/chat/completions", f"{B}/v1/chat/completions"),
        (f"{A}/v1/chat/completions/?x=1", f"{A}/v1/chat/completions/?x=1", f"{B}/v1/chat/completions?x=1"),
        (f"{A}/chat/completions", f"{A}/chat/completions", f"{B}/v1/chat/completions"),
        (f"{A}/v1/completions", f"{A}/v1/completions", f"{B}/v1/completions"),
        (f"{A}/v1/messages?beta=true", f"{A}/v1/messages?beta=true", f"{B}/v1/messages?beta=true"),
        (f"{A}/v1/responses", f"{A}/v1/responses", f"{B}/v1/responses"),
    ],
)
def test_where_the_request_goes(url: str, at_home: str, elsewhere: str) -> None:
    assert requests(url).original(A).url == at_home
    assert requests(url).original(B).url == elsewhere


def test_a_root_has_the_path_before_the_version() -> None:
    request = WireRequest.of(f"{A}/llm/v1/messages", [], b"")
    assert request
    assert request.root == f"{A}/llm"


def test_the_request_itself() -> None:
    call = requests().original(A)
    headers = headers_of(call)
    assert (call.method, call.body) == ("POST", b'{"stream": true}')
    assert headers["holdfast-resume"] == "1"
    assert headers["idempotency-key"].startswith("holdfast-")
    assert headers["authorization"] == "Bearer key"
    assert headers["host"] == "a:1"
    assert headers["accept-encoding"] == "identity"
    assert "content-length" not in headers
    assert call.limits_s == {"connect": 7, "read": 7, "write": 7}


def test_it_has_one_key_for_all_replicas_and_another_one_the_next_time() -> None:
    one, another = requests(), requests()
    keys = [headers_of(each.original(root))["idempotency-key"] for each in (one, another) for root in (A, B)]
    assert keys[0] == keys[1] != keys[2] == keys[3]


def test_a_key_of_the_application_is_left_alone() -> None:
    headers = headers_of(requests(Idempotency_Key="mine").original(A))
    assert headers.get_list("idempotency-key") == ["mine"]


def test_the_rest_of_a_run() -> None:
    asked = requests(Idempotency_Key="mine", Holdfast_Run_Id="run_1", Holdfast_Thread="t")
    call = asked.rest(B, "run_1", 3, ["é", "b"], b"run_1.2.3")
    headers = headers_of(call)
    assert (call.method, call.url) == ("POST", f"{B}/holdfast/v1/runs/run_1/resume")
    assert json.loads(call.body) == {"cursor": 3, "tail": ["é", "b"]}
    assert headers["content-type"] == "application/json"
    assert headers["holdfast-resume"] == "1"
    assert headers["last-event-id"] == "run_1.2.3"
    # A replica that takes the run over needs them for the provider.
    assert (headers["authorization"], headers["openai-organization"]) == ("Bearer key", "org")
    assert headers["holdfast-thread"] == "t"
    assert not {"host", "idempotency-key", "holdfast-run-id", "content-length"} & set(headers)
    assert "last-event-id" not in headers_of(asked.rest(B, "run_1", 0, [], None))


def test_what_cancels_a_run() -> None:
    call = requests().cancellation(A, "run_1")
    headers = headers_of(call)
    assert (call.method, call.url, call.body) == ("DELETE", f"{A}/holdfast/v1/runs/run_1", b"")
    assert headers["authorization"] == "Bearer key"
    assert not {"content-type", "holdfast-resume", "idempotency-key"} & set(headers)
    assert set(call.limits_s) == {"connect", "read", "write", "pool"}


def test_what_cancels_a_run_of_which_only_the_key_is_known() -> None:
    for asked in (requests(), requests(Idempotency_Key="mine")):
        call = asked.cancellation(B, None)
        headers = headers_of(call)
        assert (call.method, call.url, call.body) == ("DELETE", f"{B}/holdfast/v1/runs", b"")
        assert headers["authorization"] == "Bearer key"
        key = headers_of(asked.original(A))["idempotency-key"]
        assert headers.get_list("idempotency-key") == [key]
        assert not {"content-type", "holdfast-resume", "host"} & set(headers)


def test_a_run_that_the_application_named_is_known() -> None:
    assert requests(Holdfast_Run_Id="run_1").run == "run_1"
    assert requests().run is None


def test_a_run_cannot_lead_astray() -> None:
    assert requests().cancellation(A, "../x?y").url == f"{A}/holdfast/v1/runs/..%2Fx%3Fy"


def test_a_request_for_a_whole_answer() -> None:
    call = requests(body=b'{"stream": false}').original(B)
    headers = headers_of(call)
    assert (call.method, call.url, call.body) == (
        "POST",
        f"{B}/v1/chat/completions",
        b'{"stream": false}',
    )
    assert headers["idempotency-key"].startswith("holdfast-")
    assert (headers["authorization"], headers["accept-encoding"]) == ("Bearer key", "gzip")
    assert not {"holdfast-resume", "host", "content-length"} & set(headers)
    # How long a whole answer may take is for the application to say.
    assert call.limits_s == {}


def test_every_credential_goes_along() -> None:
    asked = requests(X_Api_Key="of anthropic", Anthropic_Version="2023-06-01")
    for call in (asked.original(B), asked.rest(B, "run_1", 0, [], None), asked.cancellation(B, "run_1")):
        headers = headers_of(call)
        assert (headers["x-api-key"], headers["anthropic-version"]) == ("of anthropic", "2023-06-01")


@pytest.mark.parametrize(
    ("body", "is_stream"),
    [
        (b'{"stream": true}', True),
        (b'{"stream":true}', True),
        (b'{"stream": false}', False),
        (b'{"stream": "true"}', False),
        (b'{"stream": 1}', False),
        (b'["stream", true]', False),
        (b'{"stream": true', False),
        (b'\xff"stream"', False),
        (b"", False),
    ],
)
def test_which_requests_ask_for_a_stream(body: bytes, is_stream: bool) -> None:
    request = WireRequest.of(f"{A}/v1/messages", [], body)
    assert request
    assert request.is_stream is is_stream


@pytest.mark.parametrize(
    ("method", "url", "is_ours"),
    [
        ("POST", f"{A}/v1/chat/completions", True),
        ("POST", f"{A}/v1/chat/completions?a=b", True),
        ("POST", f"{A}/chat/completions/", True),
        ("POST", f"{A}/v1/messages", True),
        ("POST", f"{A}/v1/embeddings", False),
        ("POST", f"{A}/v1/chat/completions/x", False),
        ("POST", f"{A}/v1/x?/chat/completions", False),
        ("GET", f"{A}/v1/chat/completions", False),
    ],
)
def test_which_requests_may_be_ours(method: str, url: str, is_ours: bool) -> None:
    assert may_be_ours(method, url, []) is is_ours


def test_an_application_that_resumes_by_itself_is_left_alone() -> None:
    headers = httpx.Headers({"Last-Event-ID": "3"}).raw
    assert not may_be_ours("POST", f"{A}/v1/chat/completions", headers)
