from holdfast_client._tail import TAIL_BYTES_MAX, TAIL_EVENTS_MAX, Tail


def test_the_last_events_are_kept() -> None:
    tail = Tail()
    for seq in range(TAIL_EVENTS_MAX + 10):
        tail.append(str(seq))
    assert tail.payloads() == [str(seq) for seq in range(10, TAIL_EVENTS_MAX + 10)]


def test_bytes_are_counted_as_they_will_be_sent() -> None:
    tail = Tail()
    wave = "🌊" * (TAIL_BYTES_MAX // 16)
    for _ in range(4):
        tail.append(wave)
    assert len(tail.payloads()) == 4
    tail.append("x")
    assert tail.payloads() == [wave, wave, wave, "x"]


def test_the_last_event_is_kept_whatever_its_size() -> None:
    tail = Tail()
    large = "x" * (TAIL_BYTES_MAX + 1)
    tail.append("a")
    tail.append(large)
    assert tail.payloads() == [large]
    tail.append("b")
    assert tail.payloads() == ["b"]
