from __future__ import annotations

import pytest

from holdfast_client._endpoints import AVOID_S, Endpoints, root_of_endpoint

A, B, C = "http://a:1", "http://b:2", "http://c:3"


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.mark.parametrize(
    ("endpoint", "root"),
    [
        ("http://a:8080", "http://a:8080"),
        ("http://a:8080/", "http://a:8080"),
        ("http://a:8080/v1", "http://a:8080"),
        ("http://a:8080/v1/", "http://a:8080"),
        ("HTTPS://A/llm/v1", "https://a/llm"),
        ("http://[::1]:80/v1", "http://[::1]:80"),
        ("http://u:secret@a", None),
        ("http://a/?b=c", None),
        ("http://a/#b", None),
        ("ftp://a", None),
        ("a:80", None),
        ("", None),
        (None, None),
    ],
)
def test_endpoints_are_roots_or_base_urls(endpoint: object, root: str | None) -> None:
    assert root_of_endpoint(endpoint) == root


def test_the_same_replica_when_there_is_no_other() -> None:
    endpoints = Endpoints([])
    assert (endpoints.first(A), endpoints.after(A)) == (A, A)
    endpoints.failed(A)
    assert (endpoints.first(A), endpoints.after(A)) == (A, A)


def test_replicas_take_turns() -> None:
    endpoints = Endpoints([A, B, C])
    assert [endpoints.after(root) for root in (A, B, C)] == [B, C, A]
    # A load balancer is asked once.
    assert Endpoints([B, C]).after(A) == B


def test_one_that_failed_is_passed_over_for_a_while() -> None:
    clock = Clock()
    endpoints = Endpoints([A, B, C], clock)
    endpoints.failed(B)
    assert (endpoints.first(B), endpoints.after(A), endpoints.after(C)) == (C, C, A)
    clock.now_s += AVOID_S
    assert (endpoints.first(B), endpoints.after(A)) == (B, B)


def test_one_that_answered_is_not_passed_over_any_more() -> None:
    endpoints = Endpoints([A, B])
    endpoints.failed(B)
    endpoints.answered(B)
    assert endpoints.first(B) == B


def test_when_all_failed_they_take_turns() -> None:
    endpoints = Endpoints([A, B])
    endpoints.failed(A)
    endpoints.failed(B)
    assert (endpoints.first(A), endpoints.after(A), endpoints.after(B)) == (B, B, A)
