"""Flags that several commands share, and the settings that they give."""

from __future__ import annotations

import argparse

from ..settings import SETTINGS, Settings

__all__ = ["add_server_flags", "add_setting", "add_slo_flags", "add_store_flags", "load_settings"]


def add_setting(parser: argparse.ArgumentParser, key: str, metavar: str) -> None:
    """A flag for one setting; its text is the setting's own sentence and it wins over variable and file."""
    setting = SETTINGS[key]
    default = "" if setting.default in (None, "") else f" Default: {setting.written or setting.default}."
    parser.add_argument(
        f"--{key.replace('_', '-')}",
        metavar=metavar,
        help=f"{setting.sentence.replace('%', '%%')}{default} [{setting.variable}]",
    )


def add_server_flags(parser: argparse.ArgumentParser) -> None:
    """``--port --grpc-port --host --data --token``: where the server listens and what it keeps."""
    add_setting(parser, "port", "PORT")
    add_setting(parser, "grpc_port", "PORT")
    add_setting(parser, "host", "ADDRESS")
    add_setting(parser, "data", "FOLDER")
    add_setting(parser, "token", "TOKEN")


def add_store_flags(parser: argparse.ArgumentParser) -> None:
    """``--retain --max-size --jaeger --prices``: how long the server keeps what, and what the page adds to it."""
    add_setting(parser, "retain", "DURATION")
    add_setting(parser, "max_size", "SIZE")
    add_setting(parser, "jaeger", "URL")
    add_setting(parser, "prices", "FILE")


def add_slo_flags(parser: argparse.ArgumentParser) -> None:
    """``--slo --slo-webhook --slo-command``: objectives that the server evaluates, and who hears of them."""
    setting = SETTINGS["slo"]
    parser.add_argument(
        "--slo", metavar="FILE", action="append", help=f"{setting.sentence} May be repeated. [{setting.variable}]"
    )
    add_setting(parser, "slo_webhook", "URL")
    add_setting(parser, "slo_command", "COMMAND")


def load_settings(arguments: argparse.Namespace) -> Settings:
    """The settings in force, with those of the parsed flags that are settings. Raises UsageError."""
    return Settings.load({key: value for key, value in vars(arguments).items() if key in SETTINGS})
