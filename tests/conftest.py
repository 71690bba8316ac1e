"""What every test has: faults of our own are raised, and the settings of the person who runs the tests are not seen."""

from __future__ import annotations

import os

import pytest

try:
    from hypothesis import HealthCheck, settings
except ImportError:  # an environment that runs no property tests
    pass
else:  # a busy machine is no fault of what is tested
    settings.register_profile("patient", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("patient")

for _name in [name for name in os.environ if name.startswith(("CLAUDESCOPE_", "OTEL_", "ANTHROPIC_"))]:
    del os.environ[_name]


@pytest.fixture(autouse=True)
def faults_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    from claudescope.guard import guard

    monkeypatch.setattr(guard, "reraise", True)
