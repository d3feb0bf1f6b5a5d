"""The same troubles for everything a transport can be used with: the answer is exact, and nothing comes twice."""

from __future__ import annotations

import json

import pytest
from answer import EVENTS, SHORTS, framed
from libraries import MANNERS, RAW_MANNERS, Manner, Raw, RawAsync, name_of
from replicas import Break, Fate, HangUp, Refusal, Replicas

WHOLE = framed(EVENTS, "run_0")
MIDDLE = len(WHOLE) // 2
#: Within the second of the four bytes of a wave.
WITHIN_CHARACTER = WHOLE.index("🌊".encode()) + 2

TROUBLES: dict[str, list[Fate]] = {
    "none": [],
    "reset": [Break(MIDDLE)],
    "reset within a character": [Break(WITHIN_CHARACTER)],
    "cut": [Break(MIDDLE, "cut")],
    "ended as if all had been said": [Break(MIDDLE, "end")],
    "ended before the first event": [Break(0, "end")],
    "reset before the first event": [Break(3)],
    "reset before the response": [HangUp(), HangUp()],
    "503 before it begins": [Refusal(503, {"retry-after-ms": "5"}), Refusal(502)],
    "503 when it is resumed": [Break(MIDDLE), Refusal(503, {"retry-after-ms": "5"})],
    "409 when it is resumed": [Break(MIDDLE), Refusal(409)],
    "not known when it is resumed": [Break(MIDDLE), Refusal(409, code="not_resumable"), Break(0)],
    "nowhere known when it is resumed": [Break(MIDDLE), Refusal(404, code="run_not_found"), Break(0)],
    "reset when it is resumed": [Break(MIDDLE), HangUp(), Break(0), HangUp()],
    "404 when nothing was shown": [Break(0, "end"), Refusal(404)],
    "again and again": [Break(at_bytes) for at_bytes in range(200, 1800, 90)],
}


@pytest.mark.parametrize("manner", MANNERS, ids=name_of)
def test_every_answer_is_exact(manner: Manner, replicas: Replicas) -> None:
    for trouble, fates in TROUBLES.items():
        replicas.plan(trouble, *fates)
    results = manner.ask_all(replicas, list(TROUBLES), endpoints=replicas.roots)
    assert dict(zip(TROUBLES, results)) == dict.fromkeys(TROUBLES, manner.expected)


def check_at_every_byte(path: str, manner: Raw, how: str, replicas: Replicas) -> None:
    short = SHORTS[path]
    whole = framed(short, "run_0000")
    places = {str(place): place for place in range(len(whole))}
    for question, place in places.items():
        replicas.plan(question, Break(place, how), events=short)
    results = manner.at(path).ask_all(replicas, list(places), endpoints=replicas.roots)
    assert dict(zip(places, results)) == dict.fromkeys(places, short)
    resumed = {question: replicas.requests_of(question)[1:] for question in places}
    cursors = {question: json.loads(request.body)["cursor"] for question, (request,) in resumed.items()}
    # No whole event that was received is asked for again.
    assert cursors == {question: whole[:place].count(b"\n\n") for question, place in places.items()}


@pytest.mark.parametrize("manner", RAW_MANNERS, ids=name_of)
@pytest.mark.parametrize("how", ["reset", "end"])
def test_broken_at_every_byte(manner: Raw, how: str, replicas: Replicas) -> None:
    check_at_every_byte("/chat/completions", manner, how, replicas)


@pytest.mark.parametrize("manner", [Raw("httpx"), RawAsync("httpx2")], ids=name_of)
@pytest.mark.parametrize("path", ["/completions", "/messages", "/responses"])
def test_broken_at_every_byte_of_another_wire(path: str, manner: Raw, replicas: Replicas) -> None:
    check_at_every_byte(path, manner, "reset", replicas)
