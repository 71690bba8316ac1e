"""It takes the webhooks of Alertmanager at `/alerts`, finds out with Prometheus which slice of the events burns the
budget, and writes a Grafana annotation and a ticket, each with links, example traces and the services around.

Its settings are `[explainer]` of `claudescope.toml` and `CLAUDESCOPE_EXPLAINER_*`. Secrets are no flags: others can
read those. A place is used where its setting is set; without any, explanations are on its pages alone.
"""

from __future__ import annotations

import argparse
import logging

__all__ = ["EXAMPLE", "add_arguments", "execute"]

EXAMPLE = "claudescope explainer --slo collector/slos --prometheus http://prometheus:9090 --tickets ./tickets"
_FLAGS = {
    "host": "ADDRESS",
    "port": "PORT",
    "data": "FOLDER",
    "public": "URL",
    "prometheus": "URL",
    "jaeger": "URL",
    "grafana": "URL",
    "tickets": "FOLDER",
    "webhook": "URL",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the flags."""
    from ..explainer.options import OPTIONS

    parser.add_argument(
        "--slo",
        metavar="PATH",
        nargs="+",
        help="Files of objectives, or folders of them. [CLAUDESCOPE_EXPLAINER_SLO]",
    )
    for key, metavar in _FLAGS.items():
        option = OPTIONS[key]
        default = "" if option.default in (None, "") else f" Default: {option.written or option.default}."
        parser.add_argument(
            f"--{key}", metavar=metavar, help=f"{option.sentence.replace('%', '%%')}{default} [{option.variable}]"
        )
    parser.add_argument("--revive", action="store_true", help="Try dead letters again.")


def execute(arguments: argparse.Namespace) -> int:
    """Serves until it is told to end."""
    from ..explainer.options import OPTIONS, Options
    from ..explainer.service import Explainer

    options = Options.load({key: value for key, value in vars(arguments).items() if key in OPTIONS})
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("claudescope").setLevel(logging.INFO)
    explainer = Explainer(options)

    def announce() -> None:
        places = ", ".join(explainer.places) or "its pages only"
        print(f"claudescope: {explainer.url} ({explainer.known} objectives; to {places})", flush=True)

    explainer.run(announce, revive=arguments.revive)
    return 0
