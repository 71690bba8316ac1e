"""``claudescope stack init``: the files of the tree, secrets of one's own, and nothing of a person's lost."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from compose_model import ROOT, SECRETS, docker_compose, need_compose

from claudescope.cli.main import main
from claudescope.errors import UsageError
from claudescope.stack.dotenv import parse_dotenv, read_dotenv
from claudescope.stack.files import shipped_files
from claudescope.stack.folder import RECORD
from claudescope.version import __version__


def init(capsys, *arguments: object) -> tuple[int, str, str]:
    code = main(["stack", "init", *map(str, arguments)])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_it_writes_what_the_tree_has(capsys, tmp_path):
    folder = tmp_path / "a" / "stack"
    code, out, err = init(capsys, folder)
    assert code == 0
    shipped = shipped_files()
    assert {"docker-compose.yml", "Dockerfile", ".dockerignore", ".env.example", "collector/otelcol.yaml"} <= set(
        shipped
    )
    assert files(folder) == {*shipped, ".env", ".gitignore", RECORD}
    for name, source in shipped.items():
        assert source == ROOT / name
        assert (folder / name).read_bytes() == source.read_bytes()
    assert err.startswith(
        f"{len(shipped)} files in {folder}: {len(shipped)} new. .env: with new secrets, for you alone"
    )
    assert f"cd {folder} && docker compose up -d && claudescope stack check\n" in err
    token = read_dotenv(folder / ".env", {})["CS_OTLP_TOKEN"]
    assert out == (
        "export OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318\n"
        f"export OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer%20{token}\n"
    )


def test_secrets_are_random_long_and_for_the_owner_alone(capsys, tmp_path):
    seen = set()
    for name in ("one", "two"):
        folder = tmp_path / name
        init(capsys, folder)
        assert stat.S_IMODE((folder / ".env").stat().st_mode) == 0o600
        values = read_dotenv(folder / ".env", {})
        assert values.pop("CS_DEMO_PACKAGE") == f"claudescope=={__version__}"
        assert set(values) == set(SECRETS)
        assert all(re.fullmatch(r"cs_[\w-]{43}", value) for value in values.values())
        seen |= set(values.values())
    assert len(seen) == 2 * len(SECRETS)


def test_the_written_folder_is_valid(capsys, tmp_path):
    need_compose()
    init(capsys, tmp_path)
    done = docker_compose("--profile", "*", "config", "-q", file=tmp_path / "docker-compose.yml")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_parts_can_read_it_whatever_the_umask(tmp_path):
    code = (
        "import os, sys; os.umask(0o077); from claudescope.cli.main import main; main(['stack', 'init', sys.argv[1]])"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path / "s"], check=True, capture_output=True, timeout=60)
    for path in (tmp_path / "s").rglob("*"):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o600 if path.name == ".env" else 0o755 if path.is_dir() else 0o644), path


def test_again_changes_nothing(capsys, tmp_path):
    _, first, _ = init(capsys, tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    _, again, err = init(capsys, tmp_path)
    assert again == first
    assert " as they were. .env: kept." in err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_changed_file_is_kept_and_ours_is_beside_it(capsys, tmp_path):
    init(capsys, tmp_path)
    changed = tmp_path / "collector" / "alertmanager.yml"
    ours = changed.read_text()
    changed.write_text("route: {receiver: mine}\n")
    code, _, err = init(capsys, tmp_path)
    assert code == 0
    assert changed.read_text() == "route: {receiver: mine}\n"
    assert (tmp_path / "collector" / "alertmanager.yml.new").read_text() == ours
    assert f"{changed} is changed and was kept; ours is beside it, as alertmanager.yml.new.\n" in err
    init(capsys, tmp_path)  # it stays changed, however often
    assert changed.read_text() == "route: {receiver: mine}\n"
    code, _, err = init(capsys, tmp_path, "--force")
    assert changed.read_text() == ours
    assert "1 updated" in err


def test_a_file_of_an_older_version_is_updated(capsys, tmp_path):
    """What the record says was written, and is so still, was not changed by a person."""
    import hashlib

    init(capsys, tmp_path)
    old = b"# an older version's\n"
    (tmp_path / "docker-compose.yml").write_bytes(old)
    record = json.loads((tmp_path / RECORD).read_text())
    record["files"]["docker-compose.yml"] = hashlib.sha256(old).hexdigest()
    (tmp_path / RECORD).write_text(json.dumps(record))
    _, _, err = init(capsys, tmp_path)
    assert (tmp_path / "docker-compose.yml").read_bytes() == (ROOT / "docker-compose.yml").read_bytes()
    assert "1 updated" in err


def linked(folder: Path) -> set[str]:
    return set(re.findall(r'"url": "(.+?)/d/', (folder / "collector" / "jaeger-ui.json").read_text()))


def test_links_of_jaegers_page_follow_the_address_of_grafana(capsys, tmp_path, monkeypatch):
    monkeypatch.delenv("CS_GRAFANA_URL", raising=False)
    init(capsys, tmp_path)
    assert linked(tmp_path) == {"http://localhost:3000"}
    environment = (tmp_path / ".env").read_text()
    for line, url in (
        ("CS_GRAFANA_PORT=3001", "http://localhost:3001"),
        ("CS_GRAFANA_URL=https://eyes.example.com/grafana/", "https://eyes.example.com/grafana"),
        ("", "http://localhost:3000"),
    ):
        (tmp_path / ".env").write_text(f"{environment}\n{line}\n")
        _, _, err = init(capsys, tmp_path)
        assert "1 updated" in err
        assert linked(tmp_path) == {url}
        assert json.loads((tmp_path / "collector" / "jaeger-ui.json").read_text())["linkPatterns"]
        _, _, err = init(capsys, tmp_path)
        assert "updated" not in err


def test_files_that_were_there_before_are_a_persons_own(capsys, tmp_path):
    (tmp_path / "Dockerfile").write_text("FROM scratch\n")
    (tmp_path / ".gitignore").write_text("*.pyc\n")
    _, _, err = init(capsys, tmp_path)
    assert (tmp_path / "Dockerfile").read_text() == "FROM scratch\n"
    assert (tmp_path / "Dockerfile.new").exists()
    assert (tmp_path / ".gitignore").read_text() == "*.pyc\n"
    assert f"{tmp_path / '.gitignore'} does not name .env: add it" in err


def test_an_env_file_is_kept_and_gets_what_it_lacks(capsys, tmp_path):
    mine = "# mine\nCS_OTLP_TOKEN=my-token\nCS_OTLP_HTTP_PORT=5318\nCS_RECEIVER=otlp/tls"
    (tmp_path / ".env").write_text(mine)
    _, out, _ = init(capsys, tmp_path, "--force")
    text = (tmp_path / ".env").read_text()
    assert text.startswith(f"{mine}\n\n")
    values = parse_dotenv(text, {})
    assert values["CS_OTLP_TOKEN"] == "my-token"
    assert set(values) == {"CS_OTLP_HTTP_PORT", "CS_RECEIVER", *SECRETS}
    assert out.startswith("export OTEL_EXPORTER_OTLP_ENDPOINT=https://127.0.0.1:5318\n")
    assert out.endswith("authorization=Bearer%20my-token\n")


def test_a_token_of_any_kind_is_a_header(capsys, tmp_path):
    (tmp_path / ".env").write_text("CS_OTLP_TOKEN='a,b c%=\"'\n")
    _, out, _ = init(capsys, tmp_path)
    shell = f"{out}python3 -c 'import os; print(os.environ[\"OTEL_EXPORTER_OTLP_HEADERS\"])'"
    header = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=True).stdout.rstrip("\n")
    from opentelemetry.util.re import parse_env_headers

    assert parse_env_headers(header, liberal=True) == {"authorization": 'Bearer a,b c%="'}


@pytest.mark.parametrize(
    ("line", "said"),
    [("what", "line 1 is not NAME=value"), ("CS_OTLP_HTTP_PORT=many", "CS_OTLP_HTTP_PORT is 'many'. It takes a port")],
)
def test_an_env_file_that_is_none_is_said(capsys, tmp_path, line, said):
    (tmp_path / ".env").write_text(line)
    code, out, err = init(capsys, tmp_path)
    assert (code, out) == (2, "")
    assert said in err


def test_a_place_that_cannot_be_written_is_said(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, err = init(capsys, tmp_path / "file" / "stack")
    assert code == 2
    assert re.fullmatch(r"claudescope: \S+ cannot be written: Not a directory. Name another folder .*\n", err)


def test_the_tree_itself_needs_no_copy(capsys, tmp_path, monkeypatch):
    """In a clone, ``stack init .`` makes a ``.env`` and no more: here on a copy of what is shipped."""
    monkeypatch.delenv("CS_GRAFANA_URL", raising=False)
    for name, source in shipped_files().items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(source.read_bytes())
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / ".gitignore").write_text(".env\n")
    before = files(tmp_path)
    monkeypatch.chdir(tmp_path)
    _, _, err = init(capsys, ".")
    assert files(tmp_path) == {*before, ".env"}
    assert "\nStart it: docker compose up -d && claudescope stack check\n" in err
    assert set(read_dotenv(tmp_path / ".env", {})) == set(SECRETS)  # the demo's image is made from the tree


def test_a_dotenv_that_cannot_be_read_is_said(tmp_path):
    (tmp_path / ".env").write_bytes(b"\xff")
    with pytest.raises(UsageError, match="codec can't decode"):
        read_dotenv(tmp_path / ".env", os.environ)


def test_with_the_explainer_its_profile_is_on_and_alertmanager_leads_to_it(capsys, tmp_path):
    init(capsys, tmp_path)
    alertmanager = tmp_path / "collector" / "alertmanager.yml"
    assert "explainer" not in yaml.safe_dump(yaml.safe_load(alertmanager.read_text()))
    _, _, err = init(capsys, tmp_path, "--explainer")
    assert "1 updated" in err
    values = read_dotenv(tmp_path / ".env", {})
    assert values["COMPOSE_PROFILES"] == "explainer"
    assert "http://explainer:9096/alerts" in yaml.safe_dump(yaml.safe_load(alertmanager.read_text()))
    secret = tmp_path / "secrets" / "alertmanager" / "explainer"
    assert secret.read_text() == values["CS_EXPLAINER_TOKEN"]
    as_root = os.geteuid() == 0
    assert stat.S_IMODE(secret.stat().st_mode) == (0o400 if as_root else 0o644)
    assert secret.stat().st_uid == (10001 if as_root else os.geteuid())
    before = alertmanager.read_bytes()
    _, _, err = init(capsys, tmp_path)  # it stays on
    assert " as they were. .env: kept." in err
    assert alertmanager.read_bytes() == before
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    ignored = subprocess.run(["git", "status", "--porcelain", "-uall"], cwd=tmp_path, capture_output=True, text=True)
    assert "secrets/alertmanager/explainer" not in ignored.stdout
    assert "secrets/alertmanager/README.md" in ignored.stdout
    env = tmp_path / ".env"
    env.write_text(env.read_text().replace("COMPOSE_PROFILES=explainer", "COMPOSE_PROFILES="))
    _, _, err = init(capsys, tmp_path)
    assert "1 updated" in err
    assert "explainer" not in yaml.safe_dump(yaml.safe_load(alertmanager.read_text()))


def test_the_explainer_from_the_start_beside_other_profiles(capsys, tmp_path):
    (tmp_path / ".env").write_text("COMPOSE_PROFILES=demo\n")
    _, _, err = init(capsys, tmp_path, "--explainer")
    assert "updated" not in err
    assert read_dotenv(tmp_path / ".env", {})["COMPOSE_PROFILES"] == "demo,explainer"
    need_compose()
    done = docker_compose("config", "--services", file=tmp_path / "docker-compose.yml")
    assert done.returncode == 0, done.stderr
    assert {"demo", "explainer"} <= set(done.stdout.split())
    fresh = tmp_path / "fresh"
    init(capsys, fresh, "--explainer")
    done = docker_compose("config", "--services", file=fresh / "docker-compose.yml")
    assert "explainer" in done.stdout.split()
    assert "demo" not in done.stdout.split()


def test_a_changed_alertmanager_file_is_kept_and_the_way_is_beside_it(capsys, tmp_path):
    init(capsys, tmp_path)
    changed = tmp_path / "collector" / "alertmanager.yml"
    changed.write_text("route: {receiver: mine}\n")
    init(capsys, tmp_path, "--explainer")
    assert changed.read_text() == "route: {receiver: mine}\n"
    assert "http://explainer:9096" in yaml.safe_dump(
        yaml.safe_load((tmp_path / "collector" / "alertmanager.yml.new").read_text())
    )
