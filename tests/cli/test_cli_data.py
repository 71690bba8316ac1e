"""``claudescope data``: what a store holds, and its deletion; the folder's server is never deleted under."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys

import pytest
from cli_harness import plain_environment
from data_kit import START_MS, Serving, contents, fill_store

from claudescope.cli.moments import read_moment, shown
from claudescope.cli.progress import Progress
from claudescope.errors import UsageError


@pytest.fixture
def stored(tmp_path):
    fill_store(tmp_path / "store", 5)
    return tmp_path / "store"


def facts(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_info_counts_what_there_is(claudescope, stored):
    found = facts(claudescope("data", "info", "--data", str(stored), "--json"))
    assert found["folder"] == str(stored)
    assert found["server"] is None
    assert found["current"] is True
    counts = {key: found[key] for key in ("runs", "steps", "calls", "spans", "events")}
    assert counts == {"runs": 5, "steps": 10, "calls": 5, "spans": 20, "events": 5}
    # each of 100 ms; the app's own span of a run ends 300 ms after its second has begun
    assert (found["oldest_ms"], found["newest_ms"]) == (START_MS + 1200, START_MS + 5300)
    assert found["bytes"] == sum(path.stat().st_size for path in stored.glob("store.sqlite*"))
    assert found["retention"] == {"retain_s": 604_800.0, "max_bytes": 10**9, "from": "settings"}


def test_info_reads_as_text(claudescope, stored):
    environment = {"CLAUDESCOPE_RETAIN": "12h", "CLAUDESCOPE_MAX_SIZE": "250MB"}
    said = claudescope("data", "info", "--data", str(stored), environment=environment).stdout.splitlines()
    assert said[0] == f"folder    {stored}"
    assert said[1] == "server    none has it"
    assert said[3] == "holds     5 runs, 10 steps, 5 calls, 20 spans, 5 log records"
    assert said[-1] == "keeps     spans for 0.5 days, in at most 250 MB (by the settings)"


def test_info_names_the_server_that_has_the_folder(claudescope, stored):
    with Serving(stored) as url:
        found = facts(claudescope("data", "info", "--data", str(stored), "--json"))
        assert found["server"] == url
        assert found["spans"] == 20
    assert facts(claudescope("data", "info", "--data", str(stored), "--json"))["server"] is None


def test_info_of_a_server_that_was_killed_says_that_none_has_it(claudescope, stored):
    (stored / "lock").write_text("process 1 at http://127.0.0.1:9\n")
    assert facts(claudescope("data", "info", "--data", str(stored), "--json"))["server"] is None


@pytest.mark.parametrize(("version", "told"), [(1, "older"), (99, "newer")])
def test_a_store_of_another_version_is_told_and_not_read(claudescope, stored, version, told):
    with sqlite3.connect(stored / "store.sqlite") as db:
        db.execute(f"PRAGMA user_version = {version}")
    db.close()
    found = facts(claudescope("data", "info", "--data", str(stored), "--json"))
    assert (found["version"], found["current"], found["runs"]) == (version, False, 0)
    assert "not read: another version" in claudescope("data", "info", "--data", str(stored)).stdout
    done = claudescope("export", "--data", str(stored))
    assert done.returncode == 2
    assert (
        f"was written by an {told} claudescope" in done.stderr or f"was written by a {told} claudescope" in done.stderr
    )


def test_a_file_that_is_no_store_is_told(claudescope, tmp_path):
    (tmp_path / "store.sqlite").write_text("hello " * 1000)
    done = claudescope("data", "info", "--data", str(tmp_path))
    assert done.returncode == 2
    assert f"The store {tmp_path / 'store.sqlite'} cannot be read: file is not a database." in done.stderr


def test_clear_deletes_the_store_and_its_backups_only(claudescope, stored):
    (stored / "store.sqlite.v1.backup").write_text("old")
    (stored / "mine.txt").write_text("mine")
    done = claudescope("data", "clear", "--data", str(stored), "--yes")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Deleted all of it (")
    assert {"mine.txt"} <= set(os.listdir(stored)) <= {"mine.txt", "lock", "users"}
    assert claudescope("data", "info", "--data", str(stored)).returncode == 2
    fill_store(stored, 1)  # and the folder can be used again
    assert facts(claudescope("data", "info", "--data", str(stored), "--json"))["runs"] == 1


def test_clear_asks_first(claudescope, stored):
    before = contents(stored)
    done = claudescope("data", "clear", "--data", str(stored), input="")
    assert done.returncode == 2
    assert "asks first, and nobody is there to answer. Say --yes." in done.stderr
    for answer, code in (("n", 2), ("", 2), ("y", 0)):
        ours, theirs = os.openpty()
        try:
            os.write(ours, f"{answer}\n".encode())
            done = claudescope("data", "clear", "--data", str(stored), stdin=theirs)
        finally:
            os.close(ours)
            os.close(theirs)
        assert done.returncode == code, done.stderr
        assert f"{stored} holds 5 runs, 10 steps, 5 calls, 20 spans, 5 log records. Delete all of it" in done.stderr
        if code:
            assert "nothing was deleted" in done.stderr
            assert contents(stored) == before
    assert not (stored / "store.sqlite").exists()


def test_clear_before_a_time_deletes_what_ended_until_then(claudescope, stored):
    (stored / "store.sqlite.v1.backup").write_text("old")
    marked = b"reasoning_step text"
    cut = START_MS + 3300  # the end of the whole third run; the fourth begins later
    done = claudescope("data", "clear", "--data", str(stored), "--before", str(cut + 1), "--yes")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"Deleted 3 runs and 6 steps, what ended before {shown(cut + 1)} in {stored}.\n"
    found = facts(claudescope("data", "info", "--data", str(stored), "--json"))
    counts = {key: found[key] for key in ("runs", "steps", "calls", "spans", "events", "backup_bytes")}
    assert counts == {"runs": 2, "steps": 4, "calls": 2, "spans": 8, "events": 2, "backup_bytes": 0}
    assert found["oldest_ms"] == START_MS + 4200
    content = (stored / "store.sqlite").read_bytes()
    assert content.count(marked) == 4  # of the steps that are left, and nothing of the others


def test_clear_before_a_time_deletes_only_figures_of_before(claudescope, stored):
    with Serving(stored):
        pass  # counts the steps, and writes their figures as it ends
    tiers = facts(claudescope("data", "info", "--data", str(stored), "--json"))["tiers"]
    assert tiers
    assert {tier["oldest_ms"] for tier in tiers} <= {START_MS, START_MS // 21_600_000 * 21_600_000}
    claudescope("data", "clear", "--data", str(stored), "--before", str(START_MS + 9_999), "--yes")
    assert facts(claudescope("data", "info", "--data", str(stored), "--json"))["tiers"] == tiers
    claudescope("data", "clear", "--data", str(stored), "--before", str(START_MS + 300_000), "--yes")
    left = facts(claudescope("data", "info", "--data", str(stored), "--json"))["tiers"]
    assert left == [tier for tier in tiers if tier["seconds"] > 300]


def test_clear_names_the_server_that_has_the_folder(claudescope, stored):
    with Serving(stored) as url:
        for more in ([], ["--before", "1h"]):
            done = claudescope("data", "clear", "--data", str(stored), "--yes", *more)
            assert done.returncode == 2
            assert f"is in use by process {os.getpid()} at {url}" in done.stderr
    assert len(contents(stored)["runs"]) == 5


@pytest.mark.parametrize("arguments", [("data", "info"), ("export",), ("import", "empty")], ids=lambda given: given[0])
def test_the_sdk_is_not_loaded(stored, arguments):
    (stored / "empty").touch()
    code = (
        "import sys; from claudescope.cli.main import main\n"
        f"assert main([*{arguments!r}, '--data', '.']) == 0\n"
        "print(sorted({'anthropic', 'grpc', 'pydantic', 'starlette'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=plain_environment(), cwd=stored, capture_output=True, text=True, timeout=60
    )
    assert done.stderr.splitlines()[-1] == "[]", done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("data",), "the following arguments are required: ACTION"),
        (("data", "wipe"), "invalid choice: 'wipe'"),
        (("data", "info", "--yes"), "--yes is for `claudescope data clear`."),
        (("data", "info", "--before", "1d"), "--before is for `claudescope data clear`."),
        (("data", "clear", "--json"), "--json is for `claudescope data info`."),
        (("data", "clear", "--before", "never"), "--before is 'never'."),
        (("data", "clear", "--data", "nowhere"), "There is no store in nowhere."),
    ],
)
def test_wrong_use_is_told(claudescope, arguments, told, tmp_path):
    done = claudescope(*arguments)
    assert done.returncode == 2
    assert told in done.stderr
    assert os.listdir(tmp_path) == []


def test_moments(monkeypatch):
    monkeypatch.setattr("time.time", lambda: 1_000_000.5)
    assert read_moment("--to", None) is None
    assert read_moment("--to", "1970-01-01T00:00:01.5Z") == 1500
    assert read_moment("--to", "1500") == 1500
    assert read_moment("--to", "1d") == 1_000_000_500 - 86_400_000
    assert read_moment("--to", "900000d") == 0
    assert shown(1500) == "1970-01-01 00:00:01 UTC"
    for wrong in ("", "d", "-1", "1.5", "0s", "tomorrow"):
        with pytest.raises(UsageError, match="--to is"):
            read_moment("--to", wrong)


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_silent_at_first_and_then_rare(monkeypatch, capsys, terminal):
    clock = Clock()
    monkeypatch.setattr("time.monotonic", clock)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    progress = Progress()
    for at in range(30):  # half a second apart
        progress.tell(f"step {at}")
        clock.now += 0.5
    progress.clear()
    said = capsys.readouterr().err
    if terminal:
        assert said.startswith("\rclaudescope: step 2\rclaudescope: step 3\r")
        assert said.endswith(f"\rclaudescope: step 29\r{'':<20}\r")
    else:
        assert said == "claudescope: step 2\nclaudescope: step 22\n"
