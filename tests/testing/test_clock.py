from __future__ import annotations

import pytest

from claudescope.testing import Clock


def test_it_stands_still_until_told():
    clock = Clock()
    assert clock() == clock() == clock.now == 1_767_225_600_000_000_000  # 2026-01-01T00:00:00Z
    clock.advance(1.5)
    assert clock() == 1_767_225_601_500_000_000
    assert clock.seconds() == 1_767_225_601.5


def test_it_ticks_after_each_reading():
    clock = Clock(start=100, tick=5)
    assert [clock(), clock(), clock.now] == [100, 105, 110]


def test_it_never_goes_back():
    with pytest.raises(ValueError):
        Clock().advance(-1)
