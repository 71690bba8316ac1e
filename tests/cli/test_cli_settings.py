"""Settings of the store reach the server, however it is started."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request

import pytest
from cli_harness import command, plain_environment

TABLE = {
    "date": "2026-01-02",
    "currency": "USD",
    "per": "million tokens",
    "models": [{"match": "m", "input": 1, "output": 5, "cache_write_5m": 1.25, "cache_write_1h": 2, "cache_read": 0.1}],
}
LOOK = (
    "import os, urllib.request;"
    " print(urllib.request.urlopen(os.environ['CLAUDESCOPE_RUN'] + '/api/status', timeout=30).read().decode())"
)


def figures(status):
    store = status["store"]
    return store["retain_s"], store["max_bytes"], status["jaeger_url"], status["prices_date"]


WANTED = (43_200.0, 250_000_000, "http://127.0.0.1:16686", "2026-01-02")


@pytest.fixture
def given(tmp_path):
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps(TABLE))
    return {"retain": "12h", "max_size": "250MB", "jaeger": "http://127.0.0.1:16686/", "prices": str(prices)}


@pytest.mark.parametrize("by", ["variables", "file"])
def test_run_passes_them_on(claudescope, tmp_path, given, by):
    environment = {}
    if by == "variables":
        environment = {f"CLAUDESCOPE_{key.upper()}": value for key, value in given.items()}
    else:
        (tmp_path / "claudescope.toml").write_text("".join(f"{key} = {value!r}\n" for key, value in given.items()))
    flags = ["--port", "0", "--grpc-port", "0", "--data", str(tmp_path / "data")]
    done = claudescope("run", *flags, "--", sys.executable, "-c", LOOK, environment=environment)
    assert done.returncode == 0, done.stderr
    assert figures(json.loads(done.stdout)) == WANTED


@pytest.mark.parametrize("name", ["up", "demo"])
def test_up_takes_flags_and_demo_variables(tmp_path, given, name):
    if name == "up":
        flags = [f"--{key.replace('_', '-')}={value}" for key, value in given.items()]
        arguments, environment = ["--port=0", "--grpc-port=0", f"--data={tmp_path / 'data'}", *flags], {}
    else:
        arguments = ["--port=0", "--no-open"]
        environment = {f"CLAUDESCOPE_{key.upper()}": value for key, value in given.items()}
    with subprocess.Popen(
        command(name, *arguments), env=plain_environment(**environment), stdout=subprocess.PIPE, text=True, cwd=tmp_path
    ) as process:
        try:
            url = re.search(r"http://\S+", process.stdout.readline()).group()
            with urllib.request.urlopen(f"{url}/api/status", timeout=30) as answer:
                assert figures(json.load(answer)) == WANTED
        finally:
            process.terminate()


def test_a_bad_price_file_is_told_at_start(claudescope, tmp_path):
    bad = tmp_path / "bad.json"
    bad.write_text("{")
    done = claudescope("up", "--port=0", "--grpc-port=0", f"--data={tmp_path / 'data'}", f"--prices={bad}")
    assert done.returncode == 2
    assert done.stderr.startswith(f"claudescope: {bad} is not JSON: line 1, column 2: ")
