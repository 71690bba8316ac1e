"""The explainer's own table of settings, and that others leave its variables alone."""

from __future__ import annotations

import pytest

from claudescope.errors import UsageError
from claudescope.explainer.options import OPTIONS, Options
from claudescope.settings import Settings

NEEDED = {"CLAUDESCOPE_EXPLAINER_TOKEN": "t", "CLAUDESCOPE_EXPLAINER_SLO": "a.yml"}


def load(arguments=None, config=None, **variables):
    environ = {**NEEDED, **{f"CLAUDESCOPE_EXPLAINER_{name}": value for name, value in variables.items()}}
    return Options.load(arguments, {name: value for name, value in environ.items() if value is not None}, config)


def refused(*arguments, **variables):
    with pytest.raises(UsageError) as caught:
        load(*arguments, **variables)
    return str(caught.value)


def test_every_key_is_an_attribute_with_its_default():
    options = load()
    assert set(Options.__annotations__) == set(OPTIONS)
    for key, option in OPTIONS.items():
        assert getattr(options, key) == option.default or key in ("token", "slo")
    with pytest.raises(AttributeError):
        options.port = 1


def test_flag_over_variable_over_file(tmp_path):
    config = tmp_path / "claudescope.toml"
    config.write_text('steps = "block"\n[explainer]\nport = 1\nwindows = 3\ngive_up = "2h"\nslo = ["x.yml", "y"]\n')
    options = load({"port": "5", "grafana": None}, config, PORT="7", WINDOWS="4", SLO=None)
    assert (options.port, options.windows, options.give_up) == (5, 4, 7200.0)
    assert [str(path) for path in options.slo] == ["x.yml", "y"]
    assert [str(path) for path in load(SLO="a.yml, b").slo] == ["a.yml", "b"]


def test_an_empty_variable_is_none_as_compose_passes_it_on():
    options = load(PORT="", TIMEOUT="", WEBHOOK="", TICKETS="")
    assert (options.port, options.timeout, options.webhook, options.tickets) == (9096, 10.0, "", None)


def test_a_secret_from_a_file(tmp_path):
    (tmp_path / "token").write_text("  from a file\n")
    assert load(TOKEN=None, TOKEN_FILE=str(tmp_path / "token")).token == "from a file"
    assert load(TOKEN_FILE="").token == "t"
    config = tmp_path / "claudescope.toml"
    config.write_text(f'[explainer]\ntoken_file = "{tmp_path / "token"}"\n')
    assert load(None, config, TOKEN=None).token == "from a file"
    assert load(None, config).token == "t"  # a variable wins over the file's table
    assert "Set only one of them." in refused(TOKEN_FILE=str(tmp_path / "token"))
    (tmp_path / "empty").write_text("\n")
    assert "which is empty" in refused(TOKEN=None, TOKEN_FILE=str(tmp_path / "empty"))
    assert "No such file" in refused(TOKEN=None, TOKEN_FILE=str(tmp_path / "none"))
    (tmp_path / "bytes").write_bytes(b"\xff")
    assert "it is no text" in refused(TOKEN=None, TOKEN_FILE=str(tmp_path / "bytes"))


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"PORTT": "1"}, "CLAUDESCOPE_EXPLAINER_PORTT is not a setting of the explainer. Did you mean"),
        ({"PORT_FILE": "x"}, "is not a setting"),  # no secret
        ({"WINDOWS": "0"}, "It takes a whole number from 1 to 24."),
        ({"GITHUB_REPO": "acme"}, "It takes a repository such as owner/name."),
        ({"GITHUB_REPO": "acme/shop?x"}, "It takes a repository such as owner/name."),
        ({"GITHUB_REPO": "acme/shop"}, "Set CLAUDESCOPE_EXPLAINER_GITHUB_TOKEN, too."),
        ({"JIRA": "https://j.example"}, "Set CLAUDESCOPE_EXPLAINER_JIRA_TOKEN, too."),
        ({"JIRA": "https://j.example", "JIRA_TOKEN": "s"}, "Set CLAUDESCOPE_EXPLAINER_JIRA_PROJECT, too."),
        ({"WEBHOOK": "ftp://x"}, "It takes an address such as"),
    ],
)
def test_what_is_wrong_is_named(variables, said):
    assert said in refused(**variables)


def test_a_file_that_is_wrong_is_named(tmp_path):
    config = tmp_path / "claudescope.toml"
    config.write_text("explainer = 3\n")
    assert f"{config}: explainer is no table." in refused(None, config)
    config.write_text("[explainer\n")
    assert f"{config} cannot be read" in refused(None, config)
    config.write_text("[explainer]\nprot = 1\n")
    assert "Did you mean port?" in refused(None, config)


def test_apps_in_the_same_environment_do_not_mind():
    assert Settings.load(environ={"CLAUDESCOPE_EXPLAINER_TOKEN": "t", "CLAUDESCOPE_STEPS": "block"}).steps == "block"
