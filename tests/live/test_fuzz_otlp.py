"""Hostile OTLP against a real server process: it takes or names it, goes on, and finds again what it took.

``make fuzz`` does the same for as long as one likes.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hostile_otlp import Shot, large_shots, volleys
from hostile_target import Target
from hypothesis import HealthCheck, given, settings


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    running = Target(tmp_path_factory.mktemp("fuzz") / "data")
    try:
        yield running
        running.check_memory()
        running.stop()
    finally:
        running.kill()


@pytest.mark.parametrize("shot", large_shots(), ids=range(len(large_shots())))
def test_what_is_too_large_or_too_deep(target: Target, shot: Shot) -> None:
    target.fire(shot)
    target.prove()


@settings(
    max_examples=400,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(volleys())
def test_hostile_requests_and_questions(target: Target, volley: tuple[Shot, list[str]]) -> None:
    target.volley(*volley)
