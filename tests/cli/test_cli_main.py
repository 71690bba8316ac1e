from __future__ import annotations

import subprocess
import sys
from importlib import metadata

import pytest
from cli_harness import plain_environment

from claudescope.cli.main import COMMANDS, command_module, command_parser, main


def test_version_is_that_of_the_distribution(claudescope):
    done = claudescope("--version")
    assert (done.returncode, done.stdout) == (0, f"claudescope {metadata.version('claudescope')}\n")


def test_no_command_is_wrong_use_and_shows_them_all(capsys):
    assert main([]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert all(name in shown.err for name in COMMANDS)


def test_help_shows_every_command_and_an_example(capsys):
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"  {name} " in shown and sentence in shown for name, sentence in COMMANDS.items())
    assert "example:\n  claudescope run -- python app.py" in shown


def test_unknown_command_names_the_nearest(capsys):
    assert main(["dctor"]) == 2
    assert capsys.readouterr().err == (
        "claudescope: claudescope has no command 'dctor'. Did you mean `claudescope doctor`?\n"
    )


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["stack"], "claudescope has no command 'stack'. Did you mean `claudescope stack init`?"),
        (["stack", "chck", "x"], "claudescope has no command 'stack chck'. Did you mean `claudescope stack check`?"),
        (["stck", "init"], "claudescope has no command 'stck'. Did you mean `claudescope stack init`?"),
    ],
)
def test_a_command_of_two_words_names_the_nearest(capsys, typed, said):
    assert main(typed) == 2
    assert capsys.readouterr().err == f"claudescope: {said}\n"


def test_help_of_a_group_shows_its_commands(capsys):
    assert main(["stack", "--help"]) == 0
    shown = capsys.readouterr().out
    assert [line.split("  ")[1].strip() for line in shown.splitlines()[:2]] == ["stack init", "stack check"]
    assert shown.endswith("\n`claudescope stack ... --help` says more.\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_each_command_has_its_example(name, capsys):
    with pytest.raises(SystemExit) as ended:
        main([*name.split(), "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert f"example:\n  {command_module(name).EXAMPLE}\n" in shown
    assert command_module(name).EXAMPLE.startswith(f"claudescope {name}")


@pytest.mark.parametrize("name", COMMANDS)
def test_wrong_flag_is_one_sentence_and_exit_2(name, capsys):
    assert main([*name.split(), *(["info"] if name == "data" else []), "--prot", "1"]) == 2
    shown = capsys.readouterr()
    takes_an_argument = name != "data" and any(not action.option_strings for action in command_parser(name)._actions)
    rest = "" if takes_an_argument else " 1"
    assert shown.out == ""
    assert shown.err == (
        f"claudescope: claudescope {name}: unrecognized arguments: --prot{rest}. See `claudescope {name} --help`.\n"
    )


def test_wrong_setting_names_its_source(claudescope):
    done = claudescope("up", environment={"CLAUDESCOPE_PORT": "many"})
    assert done.returncode == 2
    assert done.stderr == "claudescope: CLAUDESCOPE_PORT is 'many'. It takes a whole number from 0 to 65535.\n"


HEAVY = ("anthropic", "grpc", "pydantic")


@pytest.mark.parametrize(
    "arguments",
    [
        ["up", "--host", "192.0.2.1"],
        ["doctor", "--fast"],
        ["run", "--no-server", "--", "true"],
        ["stack", "init", "stack"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_commands_that_need_no_sdk_do_not_load_it(arguments, tmp_path):
    code = (
        "import sys; from claudescope.cli.main import main\n"
        f"code = main({arguments!r})\n"
        f"print(code, sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=plain_environment(), cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    # An address that is not ours: `up` gets as far as it does without serving, and says so.
    assert done.stdout.splitlines()[-1] == f"{2 if arguments[0] == 'up' else 0} []", done.stderr
