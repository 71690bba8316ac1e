"""The command and its child processes are as they would be without us: output, signals, exit code.

Python processes that import `anthropic` send their steps to the server on this machine. One is started unless it runs
already, or the environment names another OTLP endpoint. All words of our own go to standard error.
"""

from __future__ import annotations

import argparse
import os
import sys
import webbrowser
from typing import Final
from urllib.parse import quote

from ..errors import UsageError
from ..settings import Settings
from .flags import add_server_flags, add_setting, add_slo_flags, load_settings
from .launch import armed_environment, check_python, interpreter_of, isolation_of
from .locks import Users, one_at_a_time
from .process import NOT_EXECUTABLE, NOT_FOUND, Ended, locate, run_process, wait_for_interrupt
from .server import ServerProcess, answers, base_url, choose_ports, data_folder, running_server

__all__ = ["EXAMPLE", "add_arguments", "execute"]

EXAMPLE = "claudescope run -- python app.py"
_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_PASSED_ON: Final = ("content", "steps", "export")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags."""
    parser.usage = "%(prog)s [flags] -- CMD [...]"
    add_server_flags(parser)
    parser.add_argument(
        "--keep",
        action=argparse.BooleanOptionalAction,
        help="Keep the server that was started after CMD has ended, until Ctrl-C."
        " Default: when standard error is a terminal.",
    )
    parser.add_argument(
        "--open", action=argparse.BooleanOptionalAction, default=False, help="Open the page in a browser. Default: no."
    )
    parser.add_argument("--no-server", action="store_true", help="Start no server; send to where one is expected.")
    parser.add_argument("--service", metavar="NAME", help="Name of the app in its spans. [OTEL_SERVICE_NAME]")
    add_slo_flags(parser)
    for key in _PASSED_ON:
        add_setting(parser, key, "MODE")
    parser.add_argument("command", metavar="CMD", nargs=argparse.REMAINDER, help="The command and its arguments.")


def execute(arguments: argparse.Namespace) -> int:
    """Runs the command and gives its exit code: 128 + n after signal n, 127 not found, 126 not executable."""
    command: list[str] = arguments.command
    if command[:1] == ["--"]:
        command = command[1:]
    if not command:
        raise UsageError("claudescope run: there is no command.", f"Write it after `--`: {EXAMPLE}")
    settings = load_settings(arguments)
    file, code = locate(command[0], os.environ)
    if file is None:
        missing = "There is no command" if code == NOT_FOUND else "It is not allowed to execute"
        _say(f"{missing} {command[0]}.")
        return code
    if settings.disabled or os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        _say("is disabled by the environment or claudescope.toml; the command runs without it.")
        return _run(file, command, dict(os.environ)).code
    extra = {f"CLAUDESCOPE_{key.upper()}": value for key in _PASSED_ON if (value := getattr(arguments, key))}
    if arguments.service:
        extra["OTEL_SERVICE_NAME"] = arguments.service
    _check(file, command, armed_environment(os.environ, None))
    users = Users(settings)
    endpoint, server = _find_server(settings, users, start=not arguments.no_server)
    try:
        if arguments.open and endpoint is not None:
            webbrowser.open(f"{endpoint}/?token={quote(settings.token, safe='')}" if settings.token else endpoint)
        ended = _run(file, command, armed_environment(os.environ, endpoint, settings.token, extra))
        keep = sys.stderr.isatty() if arguments.keep is None else arguments.keep
        if server is not None and keep and not ended.told_to_end:
            wait_for_interrupt(lambda: _say(f"{command[0]} ended with {ended.code}; {endpoint} stays until Ctrl-C."))
        return ended.code
    finally:
        _leave(settings, users, server)


def _say(sentence: str) -> None:
    print(f"claudescope: {sentence}", file=sys.stderr, flush=True)


def _run(file: str, command: list[str], environment: dict[str, str]) -> Ended:
    try:
        return run_process(file, command, environment)
    except FileNotFoundError:  # the interpreter that a script's first line names
        _say(f"{command[0]} names an interpreter that is not there.")
        return Ended(NOT_FOUND)
    except OSError as error:
        _say(f"{command[0]} cannot be executed: {error.strerror}.")
        return Ended(NOT_EXECUTABLE)


def _check(file: str, command: list[str], environment: dict[str, str]) -> None:
    python = interpreter_of(file, environment)
    if python is None:
        return
    check_python(python, environment)
    if python == file and (flag := isolation_of(command)):
        _say(f"python -{flag} keeps claudescope out: leave it out, or call claudescope.instrument() in the app.")


def _find_server(settings: Settings, users: Users, start: bool) -> tuple[str | None, ServerProcess | None]:
    """The endpoint to give to the command (None: it has one), and the server, if it is ours to end."""
    for variable in _ENDPOINTS:
        if named := os.environ.get(variable):
            _say(f"sends to {named}, as {variable} says; no server is started.")
            return None, None
    expected = base_url(settings.host, settings.port)
    if not start:
        _say(f"sends to {expected}; no server is started.")
        return expected, None
    with one_at_a_time(settings):
        users.join()  # before we look: what we find stays
        if running := _use_running(settings, users):
            _say(f"{running} (already running)")
            return running, None
        ports = choose_ports(settings)
        server = ServerProcess(settings, ports, settings.data, os.environ)
        try:
            endpoint = server.wait_ready()
        except BaseException:
            users.leave()
            server.stop()
            raise
    taken = settings.port not in (0, ports[0])
    _say(endpoint + (f" (something else has port {settings.port})" if taken else ""))
    return endpoint, server


def _use_running(settings: Settings, users: Users) -> str | None:
    """The server that is there already, which counts us among its users from now on, whatever its data folder is."""
    running = running_server(settings)
    if running is None:
        return None
    folder = data_folder(running, settings.token)
    if folder is None:
        return running
    users.move(folder)
    if answers(running):
        return running
    users.move(None)  # it was about to end, and has
    return running_server(settings)


def _leave(settings: Settings, users: Users, server: ServerProcess | None) -> None:
    if server is None:
        users.leave()
        return
    with one_at_a_time(settings):  # nobody finds a server that is about to end
        if users.leave():
            _say("the server stays until the other commands that use it have ended.")
            server.let_go()
        else:
            server.stop()
