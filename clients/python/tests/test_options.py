from __future__ import annotations

import pytest

from holdfast_client import AsyncResumableTransport, ResumableTransport
from holdfast_client._options import Options


@pytest.mark.parametrize(
    ("endpoint", "root"),
    [
        ("http://a:8080", "http://a:8080"),
        ("http://a:8080/", "http://a:8080"),
        ("http://a:8080/v1", "http://a:8080"),
        ("http://a:8080/v1/", "http://a:8080"),
        ("HTTPS://a/llm/v1", "https://a/llm"),
        ("http://[::1]:80/v1", "http://[::1]:80"),
    ],
)
def test_endpoints_are_roots_or_base_urls(endpoint: str, root: str) -> None:
    assert Options.check(endpoints=[endpoint]).endpoints == (root,)


def test_an_endpoint_counts_once() -> None:
    options = Options.check(endpoints=["http://a/v1", "http://b", "http://A"])
    assert options.endpoints == ("http://a", "http://b")


@pytest.mark.parametrize("transport", [ResumableTransport, AsyncResumableTransport])
@pytest.mark.parametrize(
    ("option", "error", "says"),
    [
        (
            {"endpoints": "http://a"},
            TypeError,
            r"endpoints must be a list of at least one URL, not 'http://a'",
        ),
        ({"endpoints": []}, TypeError, r"endpoints must be a list of at least one URL"),
        ({"endpoints": 7}, TypeError, r"endpoints must be a list"),
        ({"endpoints": [7]}, ValueError, r"endpoints\[0\] must be the http\(s\) URL"),
        ({"endpoints": ["http://a", "b:80"]}, ValueError, r"endpoints\[1\] must be the http\(s\) URL"),
        ({"endpoints": ["ftp://a"]}, ValueError, r"endpoints\[0\]"),
        ({"endpoints": ["http://"]}, ValueError, r"endpoints\[0\]"),
        ({"endpoints": ["http://a:x"]}, ValueError, r"endpoints\[0\]"),
        ({"endpoints": ["http://[a"]}, ValueError, r"endpoints\[0\]"),
        ({"endpoints": ["http://a?b=c"]}, ValueError, r"endpoints\[0\] .* without .* query"),
        ({"max_retries": -1}, ValueError, r"max_retries must be 0 or more, not -1"),
        ({"max_retries": 1.5}, TypeError, r"max_retries must be a whole number, not 1.5"),
        ({"max_retries": True}, TypeError, r"max_retries must be a whole number"),
        ({"give_up_s": 0}, ValueError, r"give_up_s must be a number of seconds, 0.001 at least, not 0"),
        ({"give_up_s": float("nan")}, ValueError, r"give_up_s"),
        ({"give_up_s": "1"}, TypeError, r"give_up_s must be a number of seconds, not '1'"),
        ({"idle_s": float("inf")}, ValueError, r"idle_s"),
        ({"backoff_s": -1}, ValueError, r"backoff_s must be a number of seconds, 0 at least"),
        ({"backoff_s": 3}, ValueError, r"backoff_max_s must be a number of seconds, 3 at least, not 2"),
        ({"retry_after_max_s": None}, TypeError, r"retry_after_max_s"),
        ({"cancel_on_close": 1}, TypeError, r"cancel_on_close must be True or False, not 1"),
        ({"retries": 1}, TypeError, r"retries"),
    ],
)
def test_what_cannot_be_is_said(
    transport: type, option: dict[str, object], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        transport(**option)


def test_credentials_are_not_repeated() -> None:
    with pytest.raises(ValueError, match="without credentials") as raised:
        ResumableTransport(endpoints=["http://u:secret@a"])
    assert "secret" not in str(raised.value)
