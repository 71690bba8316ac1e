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


@pytest.mark.parametrize(
    ("given", "seconds"),
    [("7d", 604_800.0), ("12h", 43_200.0), ("30m", 1_800.0), ("90s", 90.0), (" 1.5D ", 129_600.0), ("90", 90.0)],
)
def test_a_duration_is_seconds(given, seconds):
    assert Settings.load(environ={"CLAUDESCOPE_RETAIN": given}).retain == seconds


@pytest.mark.parametrize("given", ["", "d", "7 weeks", "0s", "-1d", "nan", "inf", "7dd", "1e999d", "7d12h"])
def test_no_duration_is_refused(given):
    assert "CLAUDESCOPE_RETAIN" in (told := _refused(environ={"CLAUDESCOPE_RETAIN": given}))
    assert "7d" in told


@pytest.mark.parametrize(
    ("given", "kept"),
    [("", ""), ("http://127.0.0.1:16686/", "http://127.0.0.1:16686"), ("https://j.example/ui", "https://j.example/ui")],
)
def test_an_address_is_kept_without_its_last_slash(given, kept):
    assert Settings.load(environ={"CLAUDESCOPE_JAEGER": given}).jaeger == kept


@pytest.mark.parametrize(
    "given",
    ["127.0.0.1:16686", "javascript:alert(1)", "http://", "http://[::1", "http://a:b", "http://a/ b", 'http://a/"'],
)
def test_no_address_is_refused(given):
    assert "http://127.0.0.1:16686" in _refused(environ={"CLAUDESCOPE_JAEGER": given})


def test_the_defaults_of_the_store():
    settings = Settings.load(environ={})
    assert (settings.retain, settings.max_size, settings.jaeger, settings.prices) == (604_800.0, 10**9, "", None)
    assert Settings.load(environ={"CLAUDESCOPE_MAX_SIZE": "512MiB"}).max_size == 512 * 2**20
