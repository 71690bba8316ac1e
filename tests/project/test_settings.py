"""What the settings say of a name that they do not know: the nearest one, in the spelling of its source."""

from __future__ import annotations

from pathlib import Path

import pytest

from claudescope.errors import UsageError
from claudescope.settings import SETTINGS, Settings


def _refused(config: Path | None = None, **sources: dict[str, str]) -> str:
    with pytest.raises(UsageError) as caught:
        Settings.load(sources.get("arguments"), sources.get("environ", {}), config)
    return str(caught.value)


def _misspelled() -> list[tuple[str, str]]:
    """Each key with a letter left out, doubled or replaced: what is nearest to it is the key itself."""
    found = []
    for key in SETTINGS:
        for at in (1, len(key) // 2, len(key) - 1):
            found += [(key[:at] + key[at + 1 :], key), (key[:at] + key[at] + key[at:], key), (f"{key}s", key)]
    return [(wrong, key) for wrong, key in found if wrong not in SETTINGS]


@pytest.mark.parametrize(("wrong", "key"), [("content_mx", "content_max"), ("gprc_port", "grpc_port"), *_misspelled()])
def test_the_nearest_name_is_named(wrong, key, tmp_path):
    variable = f"CLAUDESCOPE_{wrong.upper()}"
    told = _refused(environ={variable: "1"})
    assert variable in told
    assert f"Did you mean CLAUDESCOPE_{key.upper()}?" in told
    file = tmp_path / "claudescope.toml"
    file.write_text(f'{wrong} = "1"')
    told = _refused(file)
    assert str(file) in told
    assert f"Did you mean {key}?" in told
    told = _refused(arguments={wrong: "1"})
    assert f"Did you mean {key}?" in told
