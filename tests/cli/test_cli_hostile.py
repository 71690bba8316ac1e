"""Odd surroundings: closed standard streams, a working directory that is gone, garbage in files, many at once."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from cli_harness import command, plain_environment

from claudescope.cli.server import running_server
from claudescope.errors import UsageError
from claudescope.settings import Settings, find_config


def flags(folder) -> list[str]:
    return ["--port", "0", "--grpc-port", "0", "--data", str(folder / "data")]


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_closed_standard_streams_stay_the_commands_affair(tmp_path, closed):
    closing = "; ".join(f"os.close({number})" for number in closed)
    script = f"import os, sys; {closing}; os.execv(sys.executable, sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", script, *command("run", *flags(tmp_path), "--", "sh", "-c", "echo out; exit 4")],
        env=plain_environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 4
    assert done.stdout == ("" if 1 in closed else "out\n")  # and nothing of ours
    assert "Traceback" not in done.stderr


def test_a_working_directory_that_is_gone(tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    script = "import os, sys; os.rmdir(os.getcwd()); os.execv(sys.executable, sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", script, *command("run", *flags(tmp_path), "--", "echo", "ran")],
        env=plain_environment(),
        cwd=gone,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "ran\n")


def test_many_runs_started_at_once_share_one_server(tmp_path):
    # None of them ends before all have begun: the first one's server would end with it.
    script = "touch $0; while [ $(ls -d begun-* | wc -l) -lt 5 ]; do sleep 0.05; done; exit ${0#begun-}"
    processes = [
        subprocess.Popen(
            command("run", *flags(tmp_path), "--", "sh", "-c", script, f"begun-{number}"),
            env=plain_environment(),
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(5)
    ]
    said = [process.communicate(timeout=90)[1] for process in processes]
    assert [process.returncode for process in processes] == list(range(5))
    assert len({words.split()[1] for words in said}) == 1
    assert sum("(already running)" in words for words in said) == 4


def test_garbage_in_the_lock_file_is_no_server(tmp_path):
    (tmp_path / "lock").write_bytes(b"\xff\xfe http://[ http://x:99999999/ http://\xc3\xa9 http://127.0.0.1:1")
    assert running_server(Settings({"port": 0, "data": tmp_path})) is None


def test_a_setting_file_nested_too_deep_is_named(tmp_path):
    config = tmp_path / "claudescope.toml"
    config.write_text("a=" + "[" * 5000)
    with pytest.raises(UsageError, match=r"claudescope\.toml cannot be read"):
        Settings.load(environ={}, config=config)


def test_a_home_that_there_is_not_is_named():
    with pytest.raises(UsageError, match="CLAUDESCOPE_DATA is '~nobody-of-this-name/x'"):
        Settings.load(environ={"CLAUDESCOPE_DATA": "~nobody-of-this-name/x"})


@pytest.mark.parametrize(
    ("variable", "nearest"),
    [("CLAUDESCOPE_PROT", "CLAUDESCOPE_PORT"), ("CLAUDESCOPE_DISABLE", "CLAUDESCOPE_DISABLED")],
)
def test_an_unknown_variable_names_the_nearest(variable, nearest):
    with pytest.raises(UsageError, match=f"Did you mean {nearest}"):
        Settings.load(environ={variable: "1"})


def test_what_a_choice_takes_is_said_without_the_empty_word():
    with pytest.raises(UsageError, match="It takes off or hash or full\\."):
        Settings.load(environ={"CLAUDESCOPE_CONTENT": "all"})


def test_no_working_directory_is_no_config(monkeypatch):
    monkeypatch.delenv("CLAUDESCOPE_CONFIG", raising=False)

    def gone() -> str:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(os, "getcwd", gone)
    assert find_config() is None
