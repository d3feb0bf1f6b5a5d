from __future__ import annotations

from collections.abc import Iterator

import pytest
from replicas import Replicas


@pytest.fixture
def replicas() -> Iterator[Replicas]:
    with Replicas() as replicas:
        yield replicas
