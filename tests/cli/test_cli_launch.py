from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from cli_harness import plain_environment

from claudescope.cli.launch import BOOTSTRAP, armed_environment, interpreter_of, isolation_of

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
SEEN = """
import json, sys
watched = ("anthropic", "claudescope", "opentelemetry", "wrapt")
armed = any(type(finder).__module__ == "sitecustomize" for finder in sys.meta_path)
loaded = sorted(name for name in sys.modules if name.split(".")[0] in watched)
print(json.dumps({"armed": armed, "path": sys.path[1:], "loaded": loaded}))
"""


def other_pythons() -> list[str]:
    folder = Path(os.environ.get("PYENV_ROOT", "/nowhere")) / "versions"
    return sorted(str(python) for python in folder.glob("*/bin/python"))


def test_environment_adds_only_what_is_needed():
    before = {"PATH": "/bin", "PYTHONPATH": "/a::/b"}
    assert armed_environment(before, "http://127.0.0.1:4318") == {
        "PATH": "/bin",
        "PYTHONPATH": f"{BOOTSTRAP}:/a::/b",
        "CLAUDESCOPE_RUN": "http://127.0.0.1:4318",
    }
    assert armed_environment({"PYTHONPATH": ""}, None)["PYTHONPATH"] == BOOTSTRAP
    assert armed_environment({}, None)["CLAUDESCOPE_RUN"] == "1"


def test_environment_leaves_the_apps_own_exporters_alone():
    before = {"OTEL_METRIC_EXPORT_INTERVAL": "1000", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
    armed = armed_environment(before, "http://127.0.0.1:4318", "secret")
    assert {name: value for name, value in armed.items() if name.startswith("OTEL_")} == before
    assert armed["CLAUDESCOPE_TOKEN"] == "secret"


@pytest.mark.parametrize(
    ("first_lines", "found"),
    [
        ("#!{python}\n", "{python}"),
        ("#!{python} -u\n", "{python}"),
        ("#! /usr/bin/env python3\n", "{python3}"),
        ("#!/usr/bin/env -S python3 -u\n", "{python3}"),
        ("#!/usr/bin/env A=1 python3\n", "{python3}"),
        ("#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\n", "{python}"),
        ("#!/bin/sh\nexec python3 x\n", None),
        ("#!/usr/bin/perl\n", None),
        ("print(1)\n", None),
        ("", None),
        ("#!\n", None),
        ("#!/no/such/python3\n", None),
    ],
)
def test_interpreter_is_found_by_the_first_line(tmp_path, first_lines, found):
    (tmp_path / "python3").symlink_to(sys.executable)
    names = {"python": sys.executable, "python3": str(tmp_path / "python3")}
    script = tmp_path / "tool"
    script.write_text(first_lines.format(**names))
    environment = {"PATH": str(tmp_path)}
    assert interpreter_of(str(script), environment) == (found and found.format(**names))


def test_interpreter_is_found_by_its_name(tmp_path):
    for name in ("python", "python3", "python3.11", "python3.13t", "pypy3"):
        assert interpreter_of(f"/any/{name}", {}) == f"/any/{name}"
    for name in ("pythonista", "ipython"):
        assert interpreter_of(str(tmp_path / name), {}) is None


def test_programs_that_start_another_python_are_not_asked(tmp_path):
    script = tmp_path / "poetry"
    script.write_text(f"#!{sys.executable}\n")
    assert interpreter_of(str(script), {}) is None


@pytest.mark.parametrize(
    ("line", "flag"),
    [
        ("python app.py -I", None),
        ("python -I app.py", "I"),
        ("python -uE app.py", "E"),
        ("python -X dev -S app.py", "S"),
        ("python -Xdev app.py", None),
        ("python -W error -m mod -I", None),
        ("python -c I -I", None),
        ("python -Werror -", None),
        ("python", None),
    ],
)
def test_isolation_is_noticed(line, flag):
    assert isolation_of(shlex.split(line)) == flag


def look(*command: str, **environment: str) -> dict:
    done = subprocess.run(
        command,
        env=armed_environment(plain_environment(**environment), None),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def test_a_python_process_is_armed_and_its_path_is_what_it_was():
    plain = subprocess.run(
        [sys.executable, "-c", SEEN], env=plain_environment(), capture_output=True, text=True, check=True
    )
    before, armed = json.loads(plain.stdout), look(sys.executable, "-c", SEEN)
    assert before["armed"] is False
    assert armed == {**before, "armed": True}
    assert armed["loaded"] == []


def test_children_of_children_are_armed(tmp_path):
    script = tmp_path / "start.sh"
    script.write_text(f'cd / && exec sh -c \'{sys.executable} -c "$0"\' "$1"')
    assert look("bash", str(script), SEEN)["armed"] is True


def test_spawned_and_forked_processes_are_armed(tmp_path):
    script = tmp_path / "app.py"
    script.write_text(
        "import json, multiprocessing, sys\n"
        "def seen(queue): queue.put(any(type(finder).__module__ == 'sitecustomize' for finder in sys.meta_path))\n"
        "if __name__ == '__main__':\n"
        "    answers = {}\n"
        "    for method in ('spawn', 'fork', 'forkserver'):\n"
        "        context = multiprocessing.get_context(method)\n"
        "        queue = context.Queue()\n"
        "        process = context.Process(target=seen, args=(queue,))\n"
        "        process.start()\n"
        "        answers[method] = queue.get()\n"
        "        process.join()\n"
        "    print(json.dumps(answers))\n"
    )
    assert look(sys.executable, str(script)) == {"spawn": True, "fork": True, "forkserver": True}


def test_a_sitecustomize_that_ours_hides_is_loaded(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.theirs = __name__, __file__\n")
    code = (
        "import json, sitecustomize, sys;"
        " print(json.dumps([sys.theirs, sitecustomize.__file__, type(sys.meta_path[0]).__module__]))"
    )
    theirs = str(tmp_path / "sitecustomize.py")
    assert look(sys.executable, "-c", code, PYTHONPATH=str(tmp_path)) == [
        ["sitecustomize", theirs],
        theirs,
        "sitecustomize",
    ]


def test_an_error_in_the_hidden_sitecustomize_is_told_as_python_tells_it(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("raise RuntimeError('theirs')\n")
    done = subprocess.run(
        [sys.executable, "-c", "print('goes on')"],
        env=armed_environment(plain_environment(PYTHONPATH=str(tmp_path)), None),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "goes on\n"
    assert "RuntimeError: theirs" in done.stderr


@pytest.mark.parametrize("python", other_pythons(), ids=lambda path: Path(path).parts[-3])
def test_a_python_without_claudescope_is_left_alone(python):
    done = subprocess.run(
        [python, "-c", "import sys; print(sorted(p for p in sys.path if 'bootstrap' in p))"],
        env=armed_environment(plain_environment(), None),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory) -> Path:
    """A Python that has no claudescope, and a module named anthropic."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False)
    packages = next(folder.glob("lib/python*/site-packages"))
    (packages / "anthropic.py").write_text("answer = 42\n")
    return folder / "bin" / "python"


def test_a_process_that_needs_claudescope_and_lacks_it_says_what_to_type(bare_python):
    done = subprocess.run(
        [bare_python, "-c", "import anthropic; print(anthropic.answer)"],
        env=armed_environment(plain_environment(), None),
        capture_output=True,
        text=True,
    )
    assert done.stdout == "42\n"
    assert done.stderr == (
        f"claudescope: {bare_python} cannot import claudescope; type: {bare_python} -m pip install claudescope\n"
    )


def test_a_command_whose_python_lacks_claudescope_is_not_run(claudescope, bare_python, tmp_path):
    script = tmp_path / "tool"
    script.write_text(f"#!{bare_python}\nprint('ran')\n")
    script.chmod(0o755)
    for command in ([str(bare_python), "-c", "print('ran')"], ["./tool"]):
        done = claudescope("run", "--", *command, environment=ENDPOINT)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == (
            f"claudescope: {bare_python} cannot import claudescope. Type: {bare_python} -m pip install claudescope\n"
        )


@pytest.mark.skipif(not [path for path in other_pythons() if "/3.8." in path], reason="needs Python 3.8")
def test_a_python_that_is_too_old_is_named(claudescope):
    python = next(path for path in other_pythons() if "/3.8." in path)
    done = claudescope("run", "--", python, "-c", "print('ran')", environment=ENDPOINT)
    assert done.returncode == 2
    assert (
        done.stderr == f"claudescope: {python} is Python 3.8, and claudescope needs 3.10 or newer. Use a newer one.\n"
    )


def test_isolated_python_is_told(claudescope):
    done = claudescope("run", "--", sys.executable, "-I", "-c", "print('ran')", environment=ENDPOINT)
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert "claudescope: python -I keeps claudescope out" in done.stderr


def test_disabled_runs_the_command_as_it_is(claudescope):
    code = "import os, sys; print('claudescope' in sys.modules, 'CLAUDESCOPE_RUN' in os.environ)"
    for variable in ("CLAUDESCOPE_DISABLED", "OTEL_SDK_DISABLED"):
        done = claudescope("run", "--", sys.executable, "-c", code, environment={variable: "true"})
        assert (done.returncode, done.stdout) == (0, "False False\n")
        assert "disabled" in done.stderr


@pytest.mark.parametrize("before", ["", "import importlib.util; importlib.util.find_spec('anthropic')"])
def test_the_import_of_the_sdk_instruments_it(before):
    code = (
        f"{before}\nimport json, anthropic\nfrom anthropic._base_client import SyncAPIClient\n"
        "print(json.dumps([hasattr(SyncAPIClient.request, '__wrapped__'), anthropic.__spec__.name]))"
    )
    assert look(sys.executable, "-c", code) == [True, "anthropic"]
