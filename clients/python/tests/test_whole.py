"""The course of a request that asks for no stream, without a network."""

from __future__ import annotations

import pytest
from course import REFUSED, RESET, A, B, Course, ImpatientError, Response, refusal

ANSWER = Response(200, headers={"content-type": "application/json"})
MESSAGES = "/v1/messages"


def whole(*script: Response | Exception, **options: object) -> Course:
    return Course(script, path=MESSAGES, stream=False, **options)


def test_the_first_replica_that_takes_it_answers() -> None:
    course = whole(ANSWER)
    assert (course.passed_on, course.opened, course.error) == (200, None, None)
    assert course.places == [f"a {MESSAGES}"]
    assert course.course.cancellation() is None


@pytest.mark.parametrize(
    "failure", [REFUSED, refusal(503), refusal(503, "run_taken_over"), Response(502, b"<html>")]
)
def test_the_next_one_is_asked_at_once(failure: Response | Exception) -> None:
    course = whole(failure, ANSWER)
    assert course.passed_on == 200
    assert course.places == [f"a {MESSAGES}", f"b {MESSAGES}"]
    assert course.header(0, "idempotency-key") == course.header(1, "idempotency-key")
    assert course.sleeps_s == []


@pytest.mark.parametrize("status", [400, 401, 429, 500, 503])
def test_what_a_provider_says_is_passed_on(status: int) -> None:
    assert whole(refusal(status, "upstream_unavailable")).passed_on == status


def test_each_is_asked_once() -> None:
    course = whole(refusal(503), RESET)
    assert course.error is RESET
    course = whole(RESET, refusal(503))
    assert (course.passed_on, course.error) == (503, None)
    # A load balancer besides.
    assert whole(REFUSED, REFUSED, RESET, endpoints=[B, "http://c:3"]).error is RESET
    assert whole(REFUSED, RESET, endpoints=[A, B]).error is RESET


def test_nobody_else_is_asked_when_the_application_would_wait_no_longer() -> None:
    impatient = ImpatientError()
    assert whole(impatient).error is impatient
