from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from cli_harness import command, plain_environment

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}  # so that no server is started

COUNTER = """
import signal, sys
counts = {}
def note(number, frame):
    counts[number] = counts.get(number, 0) + 1
    print("got", signal.Signals(number).name, flush=True)
for name in "SIGHUP SIGINT SIGQUIT SIGTERM SIGUSR2 SIGWINCH SIGTTIN SIGALRM".split():
    signal.signal(getattr(signal, name), note)
def report(number, frame):
    print("counts", *(f"{signal.Signals(k).name}={v}" for k, v in sorted(counts.items())), flush=True)
    sys.exit(7)
signal.signal(signal.SIGUSR1, report)
print("ready", flush=True)
while True:
    signal.pause()
"""


def test_output_and_input_are_the_commands_own(claudescope):
    done = claudescope("run", "--", "cat", "-", environment=ENDPOINT, input="hello")
    assert (done.returncode, done.stdout) == (0, "hello")
    assert done.stderr == (
        "claudescope: sends to http://127.0.0.1:9, as OTEL_EXPORTER_OTLP_ENDPOINT says; no server is started.\n"
    )


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("exit 0", 0),
        ("exit 3", 3),
        ("kill -TERM $$", 128 + signal.SIGTERM),
        ("kill -KILL $$", 128 + signal.SIGKILL),
        ("kill -SEGV $$", 128 + signal.SIGSEGV),
    ],
)
def test_exit_code_is_the_commands(claudescope, script, code):
    assert claudescope("run", "--", "sh", "-c", script, environment=ENDPOINT).returncode == code


def test_command_is_found_without_dashes_and_keeps_its_own(claudescope):
    done = claudescope(
        "run", "--no-open", "sh", "-c", 'echo "$@"', "sh", "--port", "1", "--", "x", environment=ENDPOINT
    )
    assert done.stdout == "--port 1 -- x\n"


def test_missing_command_is_127_and_unexecutable_126(claudescope, tmp_path):
    done = claudescope("run", "--", "no-such-command")
    assert (done.returncode, done.stderr) == (127, "claudescope: There is no command no-such-command.\n")
    (tmp_path / "plain.txt").write_text("text")
    done = claudescope("run", "--", "./plain.txt")
    assert (done.returncode, done.stderr) == (126, "claudescope: It is not allowed to execute ./plain.txt.\n")


def test_script_without_first_line_is_run_by_a_shell(claudescope, tmp_path):
    script = tmp_path / "script"
    script.write_text("echo shell $1\n")
    script.chmod(0o755)
    assert claudescope("run", "--", "./script", "a", environment=ENDPOINT).stdout == "shell a\n"


def test_script_whose_interpreter_is_missing_is_127(claudescope, tmp_path):
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    done = claudescope("run", "--", "./script", environment=ENDPOINT)
    assert done.returncode == 127
    assert "names an interpreter that is not there" in done.stderr


def test_no_command_is_wrong_use(claudescope):
    done = claudescope("run", "--")
    assert done.returncode == 2
    assert "Write it after `--`: claudescope run -- python app.py" in done.stderr


def start_counter(folder: Path, **more) -> subprocess.Popen[str]:
    script = folder / "counter.py"
    script.write_text(COUNTER)
    return subprocess.Popen(
        command("run", "--", sys.executable, str(script)),
        env=plain_environment(**ENDPOINT),
        cwd=folder,
        text=True,
        **more,
    )


def test_every_signal_is_passed_on_once(tmp_path):
    process = start_counter(tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
    with process, process.stdout as lines:
        assert lines.readline() == "ready\n"
        sent = ["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR2", "SIGWINCH", "SIGTTIN", "SIGALRM"]
        for name in sent:
            process.send_signal(getattr(signal, name))
            assert lines.readline() == f"got {name}\n"
        process.send_signal(signal.SIGUSR1)
        counted = " ".join(f"{name}=1" for name in sorted(sent, key=lambda name: getattr(signal, name)))
        assert lines.readline() == f"counts {counted}\n"
    assert process.returncode == 7


def test_ctrl_c_in_a_terminal_reaches_the_command_once(tmp_path):
    ours, theirs = pty.openpty()

    def own_terminal() -> None:
        os.setsid()
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

    process = start_counter(
        tmp_path, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=own_terminal
    )
    os.close(theirs)
    with process, process.stdout as lines:
        assert lines.readline() == "ready\n"
        os.write(ours, b"\x03")
        assert lines.readline() == "got SIGINT\n"
        # Signals wait in the order of their numbers: a second SIGINT would come before SIGUSR1.
        process.send_signal(signal.SIGUSR1)
        assert lines.readline() == "counts SIGINT=1\n"
    os.close(ours)
    assert process.returncode == 7


def test_command_that_signals_its_own_group_gets_nothing_twice(tmp_path):
    # `trap 'kill 0' TERM` would go round for ever if the signal of the child's own group came back to it.
    script = """
        n=0; trap 'n=$((n+1)); test $n = 1 && kill -TERM 0' TERM; echo ready
        while test $n -lt 2; do sleep .05; done
        sleep .5; echo $n
    """
    process = subprocess.Popen(
        command("run", "--", "bash", "-c", script),
        env=plain_environment(**ENDPOINT),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        cwd=tmp_path,
    )
    with process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=30)
    assert out == "2\n"
    assert process.returncode == 0


def test_signal_mask_and_ignored_signals_are_what_they_would_be_without_us(tmp_path):
    look = ["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]
    seen = [
        subprocess.run(
            argv,
            env=plain_environment(**ENDPOINT),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGXCPU, signal.SIG_IGN),
        ).stdout
        for argv in (look, command("run", "--", *look))
    ]
    internal = (
        3 << 31
    )  # signals 32 and 33 are glibc's own: its posix_spawn ignores them until the program's glibc is up
    plain, ours = ([int(line.split()[1], 16) & ~internal for line in text.splitlines()] for text in seen)
    assert ours == plain == [0, 1 << (signal.SIGXCPU - 1)]
