"""The course of a run, without a network."""

from __future__ import annotations

import json

import httpx
import pytest
from answer import DONE, ERROR, EVENTS, SHORT, SHORTS, framed, payloads_of
from course import REFUSED, RESET, RUN, A, B, Course, Response, TruncatedError, asked, refusal

from holdfast_client._endpoints import Endpoints
from holdfast_client._events import EVENT_BYTES_MAX
from holdfast_client._options import Options
from holdfast_client._resumption import Resumption
from holdfast_client._steps import Open, Send

CHAT = "/v1/chat/completions"
RESUME = f"/holdfast/v1/runs/{RUN}/resume"


def stream(after: int = 0) -> bytes:
    return framed(EVENTS, RUN, after)


def whole_events(data: bytes) -> int:
    return data.count(b"\n\n")


def test_a_healthy_answer() -> None:
    course = Course([Response(200, stream())])
    assert payloads_of(course.delivered) == EVENTS
    assert (course.opened, course.passed_on, course.error) == (200, None, None)
    assert course.places == [f"a {CHAT}"]
    assert course.course.cancellation() is None


@pytest.mark.parametrize("end", [RESET, None])
def test_broken_at_every_byte(end: Exception | None) -> None:
    whole = framed(SHORT, RUN)
    for place in range(len(whole)):
        cursor = whole_events(whole[:place])
        script: list[Response | Exception] = [Response(200, whole[:place], end=end)]
        if cursor < len(SHORT):
            script.append(Response(200, framed(SHORT, RUN, cursor)))
        course = Course(script)
        assert payloads_of(course.delivered) == SHORT, place
        assert course.error is None
        if cursor < len(SHORT):
            assert course.places[1] == f"b {RESUME}"
            assert course.body(1) == {"cursor": cursor, "tail": SHORT[:cursor]}
            assert course.header(1, "last-event-id") == (f"{RUN}.1.{cursor}" if cursor else None)


def test_split_at_every_byte_and_broken_in_every_event() -> None:
    for split in range(len(framed(SHORT, RUN))):
        script = []
        for after in range(len(SHORT)):
            # One more event, and a part of the next: every connection but the last one breaks within an event.
            rest = framed(SHORT, RUN, after)
            cut = min(len(rest), rest.index(b"\n\n") + 2 + split % 20)
            script.append(Response(200, rest[:cut][:split], rest[:cut][split:], end=RESET))
        course = Course(script)
        assert payloads_of(course.delivered) == SHORT, split
        assert [course.body(index)["cursor"] for index in range(1, len(SHORT))] == [1, 2, 3, 4]


def test_replicas_take_turns() -> None:
    pieces = [framed(EVENTS[:count], RUN, count - 1) for count in range(1, 4)]
    script = [*(Response(200, piece, end=RESET) for piece in pieces), Response(200, stream(3))]
    course = Course(script)
    assert payloads_of(course.delivered) == EVENTS
    assert course.places == [f"a {CHAT}", *(f"{replica} {RESUME}" for replica in "bab")]
    assert [course.body(index) for index in range(1, 4)] == [
        {"cursor": cursor, "tail": EVENTS[:cursor]} for cursor in range(1, 4)
    ]


def test_one_url_for_all_replicas() -> None:
    course = Course([REFUSED, Response(200, end=RESET), Response(200, stream())], endpoints=None)
    assert payloads_of(course.delivered) == EVENTS
    assert course.places == [f"a {CHAT}", f"a {CHAT}", f"a {RESUME}"]


def test_the_answer_ends_with_its_last_event() -> None:
    after = b"data: more\n\n"
    for end in (RESET, None):
        course = Course([Response(200, stream() + after, after, end=end)])
        assert payloads_of(course.delivered) == EVENTS
        assert course.error is None


@pytest.mark.parametrize("end", [RESET, None])
def test_an_error_event_ends_it_as_well(end: Exception | None) -> None:
    events = [*EVENTS[:2], ERROR]
    course = Course([Response(200, framed(events, RUN), end=end)])
    assert payloads_of(course.delivered) == events
    assert course.error is None
    assert course.course.cancellation() is None


@pytest.mark.parametrize("wire", SHORTS)
def test_every_wire(wire: str) -> None:
    short = SHORTS[wire]
    whole = framed(short, RUN)
    broken = whole[: whole.index(b"\n\n") + 10]
    script = [REFUSED, Response(200, broken, end=RESET), Response(200, framed(short, RUN, 1))]
    course = Course(script, path=f"{wire}?beta=true")
    assert payloads_of(course.delivered) == short
    assert course.error is None
    assert course.places == [f"a {wire}", f"b /v1{wire}", f"a {RESUME}"]
    assert course.calls[1].url == f"{B}/v1{wire}?beta=true"


@pytest.mark.parametrize("payload", ['{"error": null}', '"error"', '{"error', '[{"error": 1}]'])
def test_what_only_looks_like_an_error_does_not(payload: str) -> None:
    first = framed([payload], RUN)
    rest = framed([payload, DONE], RUN, 1)
    course = Course([Response(200, first, end=RESET), Response(200, rest)])
    assert payloads_of(course.delivered) == [payload, DONE]


class TestBeforeItBegins:
    @pytest.mark.parametrize(
        "failure",
        [
            REFUSED,
            refusal(503),
            refusal(503, "store_unavailable"),
            refusal(503, "run_taken_over"),
            Response(502, b"<html>"),
            Response(504),
            Response(503, end=RESET),
        ],
    )
    def test_the_request_is_made_again(self, failure: Response | Exception) -> None:
        course = Course([failure, Response(200, stream())])
        assert payloads_of(course.delivered) == EVENTS
        assert course.places == [f"a {CHAT}", f"b {CHAT}"]
        assert course.calls[0].body == course.calls[1].body
        assert course.header(0, "idempotency-key") == course.header(1, "idempotency-key")

    def test_the_last_failure_is_what_the_application_sees(self) -> None:
        course = Course([refusal(503), REFUSED], give_up_s=0.03)
        assert course.error is REFUSED
        assert course.course.cancellation() is None
        course = Course([REFUSED, refusal(503)], give_up_s=0.03)
        assert (course.error, course.passed_on) == (None, 503)
        assert course.course.cancellation() is None

    @pytest.mark.parametrize("status", [400, 401, 404, 409, 422, 429, 500])
    def test_what_will_not_change_is_passed_on(self, status: int) -> None:
        course = Course([Response(status)])
        assert (course.passed_on, course.opened, course.error) == (status, None, None)
        assert course.course.cancellation() is None

    @pytest.mark.parametrize("status", [502, 503, 504])
    def test_what_has_been_tried_already_is_passed_on(self, status: int) -> None:
        assert Course([refusal(status, "upstream_unavailable")]).passed_on == status

    def test_what_is_no_run_is_passed_on(self) -> None:
        assert Course([Response(200, headers={"content-type": "text/event-stream"})]).passed_on == 200

    def test_a_replica_is_waited_for_if_it_is_the_only_one(self) -> None:
        script = [refusal(503, retry_after_ms="1500"), Response(200, stream())]
        assert Course(script, endpoints=None).sleeps_s == [1.5]
        assert Course([script[0], Response(200, stream())]).sleeps_s == [0.025]


class TestWhenItBreaks:
    BROKEN = framed(EVENTS[:2], RUN)

    def broken(self) -> Response:
        return Response(200, self.BROKEN, end=RESET)

    @pytest.mark.parametrize(
        "failure", [REFUSED, *(Response(status) for status in (409, 429, 500, 502, 503, 504))]
    )
    def test_another_try(self, failure: Response | Exception) -> None:
        course = Course([self.broken(), failure, Response(200, stream(2))])
        assert payloads_of(course.delivered) == EVENTS
        assert course.places[1:] == [f"b {RESUME}", f"a {RESUME}"]

    @pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
    def test_what_will_not_change_is_told_as_what_broke(self, status: int) -> None:
        course = Course([self.broken(), Response(status)])
        assert course.error is RESET
        assert payloads_of(course.delivered) == EVENTS[:2]
        assert course.course.cancellation() is None

    def test_what_is_no_run_will_not_do(self) -> None:
        course = Course([self.broken(), Response(200, headers={"content-type": "application/json"})])
        assert course.error is RESET

    def test_a_run_lost_before_it_was_shown_is_begun_again(self) -> None:
        again = {"content-type": "text/event-stream", "holdfast-run-id": "run_2"}
        course = Course(
            [
                Response(200, b": hb\n", end=RESET),
                Response(404),
                Response(200, framed(EVENTS[:1], "run_2"), end=RESET, headers=again),
                Response(200, stream(1), headers=again),
            ]
        )
        assert payloads_of(course.delivered) == EVENTS
        assert course.places == [
            f"a {CHAT}",
            f"b {RESUME}",
            f"a {CHAT}",
            "b /holdfast/v1/runs/run_2/resume",
        ]
        assert course.header(0, "idempotency-key") == course.header(2, "idempotency-key")

    @pytest.mark.parametrize("count", [0, 1])
    def test_a_run_that_continues_under_another_id_is_come_back_to_under_that(self, count: int) -> None:
        fork = {"content-type": "text/event-stream", "holdfast-run-id": "run_2"}
        begun = framed(EVENTS[: 2 + count], "run_2", 2)
        course = Course(
            [
                self.broken(),
                Response(200, begun, end=RESET, headers=fork),
                Response(200, framed(EVENTS, "run_2", 2 + count), headers=fork),
            ]
        )
        assert payloads_of(course.delivered) == EVENTS
        assert course.places[2].endswith("/holdfast/v1/runs/run_2/resume")
        # The id of an event of the first run says nothing about this one.
        assert course.header(2, "last-event-id") == (f"run_2.1.{2 + count}" if count else None)

    def test_a_404_of_the_request_itself_is_final(self) -> None:
        course = Course([Response(200, end=RESET), Response(404), Response(404)])
        assert course.error is RESET

    def test_an_end_without_an_end_is_an_error(self) -> None:
        course = Course([Response(200, self.BROKEN)], max_retries=0)
        assert isinstance(course.error, TruncatedError)

    def test_what_broke_it_first_is_told(self) -> None:
        later = Response(200, end=ConnectionError("reset again"))
        assert Course([self.broken(), later], max_retries=1).error is RESET
        gone_on = Response(200, framed(EVENTS[:3], RUN, 2), end=REFUSED)
        assert Course([self.broken(), gone_on, later], max_retries=1).error is REFUSED

    def test_retries_are_counted_from_the_last_event(self) -> None:
        silent = Response(200, end=RESET)
        course = Course([self.broken(), REFUSED, silent, REFUSED, Response(409)], max_retries=2)
        assert course.error is RESET
        # One of two replicas that refuses lengthens no wait: the other may be back.
        assert course.sleeps_s == [0.025, 0.025, 0.05, 0.025]
        script = [self.broken(), REFUSED, Response(200, framed(EVENTS[:3], RUN, 2), end=RESET)]
        course = Course([*script, REFUSED, Response(200, stream(3))], max_retries=2)
        assert payloads_of(course.delivered) == EVENTS

    def test_closed_doors_are_not_counted(self) -> None:
        doors = [REFUSED, refusal(503), Response(502), Response(504)] * 5
        course = Course([*doors[:8], self.broken(), *doors, Response(200, stream(2))])
        assert payloads_of(course.delivered) == EVENTS

    def test_keep_alives_are_no_progress(self) -> None:
        silent = [Response(200, b": hb\n", end=RESET) for _ in range(4)]
        assert Course(silent, max_retries=3).error is RESET

    def test_time_runs_out(self) -> None:
        failures = [refusal(503, retry_after="9") for _ in range(4)]
        course = Course([self.broken(), *failures], endpoints=None, give_up_s=30)
        assert course.error is RESET
        assert course.sleeps_s == [0.025, 9, 9, 9]

    def test_time_begins_anew_with_a_keep_alive(self) -> None:
        alive = Response(200, b": hb\n", end=RESET)
        script = [self.broken(), REFUSED, alive, REFUSED, Response(200, stream(2))]
        course = Course(script, give_up_s=5, backoff_s=4, backoff_max_s=4)
        assert payloads_of(course.delivered) == EVENTS
        assert course.sleeps_s == [2, 2, 2, 2]

    def test_a_draining_replica_is_left_for_another(self) -> None:
        script = [self.broken(), refusal(503, retry_after="9"), Response(200, stream(2))]
        course = Course(script, endpoints=["http://b:2", "http://c:3"])
        assert payloads_of(course.delivered) == EVENTS
        assert course.places == [f"a {CHAT}", f"b {RESUME}", f"c {RESUME}"]
        assert course.sleeps_s == [0.025, 0.025]

    def test_an_event_without_end_is_given_up(self) -> None:
        course = Course([self.broken(), Response(200, b"data: " + b"x" * EVENT_BYTES_MAX)])
        assert isinstance(course.error, TruncatedError)
        assert "larger than" in str(course.error)


class TestWhoseRequestIsNotStored:
    BROKEN = framed(EVENTS[:2], RUN)
    UNKNOWN = json.dumps({"error": {"code": "not_resumable", "message": "m"}})

    def broken(self) -> Response:
        return Response(200, self.BROKEN, end=RESET)

    def unknown(self) -> Response:
        return Response(200, b": hb\n\n", f"data: {self.UNKNOWN}\n\n".encode())

    def brought(self, course: Course) -> list[bool]:
        return ["request" in course.body(index) for index in range(len(course.calls))]

    @pytest.mark.parametrize("wire", SHORTS)
    @pytest.mark.parametrize("is_open", [False, True])
    def test_is_asked_for_with_it(self, wire: str, is_open: bool) -> None:
        short = SHORTS[wire]
        broken = Response(200, framed(short[:1], RUN), end=RESET)
        refused = self.unknown() if is_open else refusal(409, "not_resumable")
        course = Course([broken, refused, Response(200, framed(short, RUN, 1))], path=f"{wire}?beta=true")
        assert payloads_of(course.delivered) == short
        assert course.error is None
        without, again = course.body(1), course.body(2)
        request = {"path": f"/v1{wire}", "body": course.calls[0].body.decode()}
        assert again == {**without, "request": request}
        assert course.places[1:] == [f"b {RESUME}", f"a {RESUME}"]

    def test_nor_anything_else_of_it(self) -> None:
        failures = [refusal(404, "run_not_found"), REFUSED]
        course = Course([self.broken(), *failures, Response(200, stream(2))])
        assert payloads_of(course.delivered) == EVENTS
        assert self.brought(course) == [False, False, True, True]
        assert len(course.body(3)["tail"]) == course.body(3)["cursor"] == 2

    def test_nor_may_it_be_begun_anew(self) -> None:
        course = Course([self.broken(), *[refusal(404, "run_not_found")] * 2])
        assert course.error is RESET
        assert self.brought(course) == [False, False, True]

    def test_until_a_replica_has_answered_that(self) -> None:
        failures = [
            *(refusal(409, "not_resumable"), REFUSED, refusal(409, "not_resumable")),
            *(self.unknown(), Response(200, end=RESET)),
            *(refusal(409, "cursor_ahead"), Response(409, end=RESET), refusal(409, "not_resumable")),
        ]
        course = Course([self.broken(), *failures, Response(200, stream(2))], max_retries=20)
        assert payloads_of(course.delivered) == EVENTS
        yes, no = True, False
        assert self.brought(course) == [no, no, yes, yes, no, yes, no, no, no, yes]

    def test_and_that_cannot_be_gone_on_with_all_the_same(self) -> None:
        course = Course([self.broken(), self.unknown(), self.unknown()])
        assert payloads_of(course.delivered) == [*EVENTS[:2], self.UNKNOWN]
        assert course.error is None

    def test_only_where_the_first_event_says_so(self) -> None:
        late = framed([*EVENTS[:3], self.UNKNOWN], RUN, 2)
        course = Course([self.broken(), Response(200, late)])
        assert payloads_of(course.delivered) == [*EVENTS[:3], self.UNKNOWN]
        assert self.brought(course) == [False, False]

    def test_is_given_up_if_it_cannot_be_asked_for_again(self) -> None:
        assert Course([self.broken(), self.unknown()], max_retries=1).error is RESET


def test_a_replica_that_failed_one_run_is_not_asked_first_by_the_next() -> None:
    options = Options.check(endpoints=[A, B])
    endpoints = Endpoints(options.endpoints)
    endpoints.failed(A)
    step = next(Resumption(asked(CHAT), options, endpoints, TruncatedError).steps())
    assert isinstance(step, Send)
    assert step.call.url == f"{B}{CHAT}"


def test_a_run_can_be_cancelled_from_the_request_on() -> None:
    options = Options.check()
    resumption = Resumption(asked(CHAT), options, Endpoints(()), TruncatedError)
    steps = resumption.steps()
    assert resumption.cancellation() is None
    step = next(steps)
    assert isinstance(step, Send)
    call = resumption.cancellation()
    assert call is not None
    assert (call.method, call.url) == ("DELETE", f"{A}/holdfast/v1/runs")
    keys = [httpx.Headers(each.headers)["idempotency-key"] for each in (step.call, call)]
    assert keys[0] == keys[1]
    # What went wrong may have gone wrong before anything was sent.
    assert resumption.cancellation(after_fault=True) is None
    assert isinstance(steps.send(Response().reply), Open)
    assert resumption.cancellation(after_fault=True) == resumption.cancellation()
    call = resumption.cancellation()
    assert call is not None
    assert (call.method, call.url) == ("DELETE", f"{A}/holdfast/v1/runs/{RUN}")
