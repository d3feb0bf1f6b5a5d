from __future__ import annotations

from email.utils import formatdate

import pytest

from holdfast_client._budget import Budget, retry_after_s
from holdfast_client._options import Options

NOW_S = 1_000_000.0


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def budget(
    jitter: float, clock: Clock | None = None, endpoints: list[str] | None = None, **options: float
) -> Budget:
    return Budget(Options.check(endpoints=endpoints, **options), clock or Clock(), lambda: jitter)


@pytest.mark.parametrize(
    ("jitter", "waits_s"),
    [
        (0.0, [0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1, 1]),
        (1.0, [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2, 2]),
    ],
)
def test_waits_grow_until_retries_are_spent(jitter: float, waits_s: list[float]) -> None:
    tries = budget(jitter)
    assert [tries.next_s() for _ in range(8)] == pytest.approx(waits_s)
    assert tries.next_s() is None


def test_closed_doors_cost_no_retry_but_time() -> None:
    clock = Clock()
    tries = budget(1, clock, max_retries=1, give_up_s=10)
    doors = [tries.next_s(is_closed_door=True) for _ in range(8)]
    assert doors == pytest.approx([0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2, 2])
    assert tries.next_s() == 2
    assert tries.next_s() is None
    assert tries.next_s(is_closed_door=True) == 2
    clock.now_s += 8
    assert tries.next_s(is_closed_door=True) is None


def test_every_replica_is_asked_before_the_wait_grows() -> None:
    tries = budget(1, endpoints=["http://a:8080", "http://b:8080", "http://c:8080"])

    def doors(count: int) -> list[float | None]:
        return [tries.next_s(is_closed_door=True) for _ in range(count)]

    assert doors(9) == pytest.approx([0.05, 0.05, 0.05, 0.05, 0.05, 0.1, 0.05, 0.05, 0.2])
    assert tries.next_s() == pytest.approx(0.4)
    assert doors(3) == pytest.approx([0.05, 0.05, 0.8])
    doors(1)
    tries.progressed()
    assert doors(6) == pytest.approx([0.05, 0.05, 0.05, 0.05, 0.05, 0.1])


def test_a_replica_s_wish_counts_before_the_others_were_asked() -> None:
    tries = budget(0, endpoints=["http://a:8080", "http://b:8080"])
    assert tries.next_s(1.5, is_closed_door=True) == 1.5


def test_no_retries_are_none_even_after_a_closed_door() -> None:
    assert budget(1, max_retries=0).next_s(is_closed_door=True) is None


def test_without_a_wait_thousands_of_doors_may_be_closed() -> None:
    tries = budget(1, backoff_s=0)
    assert {tries.next_s(is_closed_door=True) for _ in range(2000)} == {0}


def test_an_event_gives_all_retries_back() -> None:
    tries = budget(1)
    for _ in range(8):
        tries.next_s()
    tries.progressed()
    assert tries.next_s() == pytest.approx(0.05)


def test_what_a_replica_asks_for_is_the_least_and_has_a_limit() -> None:
    assert budget(0).next_s(5) == 5
    assert budget(1).next_s(5) == 5.5
    assert budget(1).next_s(0.001) == 0.05
    assert budget(0).next_s(3600) == 10
    assert budget(0, retry_after_max_s=1).next_s(3600) == 1


def test_silence_is_borne_for_so_long() -> None:
    clock = Clock()
    tries = budget(0, clock, give_up_s=10)
    assert tries.next_s(9.9) == 9.9
    assert budget(0, clock, give_up_s=10).next_s(10) is None
    clock.now_s += 9.9
    assert tries.next_s(0.2) is None
    tries.heard()
    assert tries.next_s(0.2) == 0.2


@pytest.mark.parametrize(
    ("headers", "delay_s"),
    [
        ({}, None),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"x-ms-retry-after-ms": "1500"}, 1.5),
        ({"retry-after": " 2 "}, 2),
        ({"retry-after": "0"}, 0),
        ({"retry-after-ms": "10", "retry-after": "2"}, 0.01),
        ({"retry-after-ms": "soon", "retry-after": "2"}, 2),
        ({"retry-after": formatdate(NOW_S + 7, usegmt=True)}, 7),
        ({"retry-after": formatdate(NOW_S - 7, usegmt=True)}, 0),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1e3"}, None),
        ({"retry-after": "tomorrow"}, None),
    ],
)
def test_what_a_response_asks_for(headers: dict[str, str], delay_s: float | None) -> None:
    assert retry_after_s(headers, NOW_S) == delay_s
