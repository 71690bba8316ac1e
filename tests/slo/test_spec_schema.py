"""The schema for editors takes what is read, and refuses the mistakes that it can see."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from claudescope.slo.spec.schema import schema

HERE = Path(__file__).parent
VALIDATOR = Draft202012Validator(schema())
NATIVE = [path for path in sorted((HERE / "good").iterdir()) if not path.stem.startswith("openslo")]


def documents(path: Path) -> list[object]:
    """As editors read them: numbers and truth values of YAML 1.2, no dates."""

    class Loader(yaml.SafeLoader):
        pass

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    return [document for document in yaml.load_all(path.read_text("utf-8"), Loader) if document is not None]


def test_it_is_a_schema():
    Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize("path", NATIVE, ids=lambda path: path.stem)
def test_good_files_are_taken(path):
    for document in documents(path):
        assert [error.message for error in VALIDATOR.iter_errors(document)] == []


SEEN = [
    "key-misspelled",
    "key-objective-missing",
    "key-plugin",
    "key-version-other",
    "objective-100",
    "objective-quoted",
    "objective-share",
    "name-space",
    "label-name",
    "source-both",
    "source-none",
    "indicator-two",
    "indicator-none",
    "indicator-no-bound",
    "latency-no-unit",
    "confidence-over-1",
    "index-17",
    "windows-severity",
    "windows-empty",
    "for-unit",
    "period-word",
    "alpha-one",
    "min-events-half",
    "canary-half",
]


@pytest.mark.parametrize("name", SEEN)
def test_mistakes_are_seen(name):
    (document,) = documents(HERE / "malformed" / f"{name}.yml")
    assert list(VALIDATOR.iter_errors(document))


def test_every_key_has_a_sentence():
    form = schema()
    for definition in [form, *form["$defs"].values()]:
        for part in [definition, *definition.get("anyOf", ())]:
            for name, field in part.get("properties", {}).items():
                assert field["description"].endswith("."), name
