"""The stack on loopback without containers, with the configuration that ships: only addresses and folders differ.

``python tests/stack/stack_native.py`` starts it for a person (``make stack-native``) until Ctrl-C.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import secrets
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

import yaml
from stack_backends import Jaeger, Prometheus
from stack_programs import Program

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "e2e"))

from free_ports import free_port

ROOT = Path(__file__).resolve().parents[2]
BINARIES = Path(os.environ.get("STACK_CACHE", ROOT / ".cache" / "stack")) / "bin"
COLLECTOR = ROOT / "collector"
Edit = Callable[[str], str]
USUAL_PORTS = {
    "grpc": 4317,
    "http": 4318,
    "jaeger_ui": 16686,
    "prometheus": 9090,
    "alertmanager": 9093,
}


def _flags(service: str) -> list[str]:
    """The flags of a service in docker-compose.yml, with the defaults of its variables."""
    command = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))["services"][service]["command"]

    def default(text: str) -> str:
        while (found := re.sub(r"\$\{\w+:?-([^${}]*)\}", r"\1", text)) != text:
            text = found
        return text

    return [default(word) for word in command]


class Stack:
    """Collector, Jaeger, Prometheus and Alertmanager in ``folder``; a context manager.

    ``environment`` sets ``CS_*`` variables of the collector and Jaeger. ``alertmanager`` edits the text of
    alertmanager.yml. ``ports`` fixes some of the ports, else all are free ones.
    """

    NAMES = ("alertmanager", "prometheus", "jaeger", "collector")

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str] | None = None,
        *,
        alertmanager: Edit = str,
        ports: Mapping[str, int] | None = None,
        names: tuple[str, ...] = NAMES,
    ) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        roles = "grpc http health telemetry jaeger_otlp jaeger_ui jaeger_query jaeger_health jaeger_telemetry"
        self._roles = [*roles.split(), "prometheus", "alertmanager"]
        self.ports = {**{role: free_port() for role in self._roles}, **(ports or {})}
        self.token = secrets.token_urlsafe(24)
        self.hmac_key = secrets.token_urlsafe(32)
        self.endpoint = f"http://127.0.0.1:{self.ports['http']}"
        self.jaeger = Jaeger(f"http://127.0.0.1:{self.ports['jaeger_ui']}")
        self.prometheus = Prometheus(f"http://127.0.0.1:{self.ports['prometheus']}")
        self.alertmanager_url = f"http://127.0.0.1:{self.ports['alertmanager']}"
        self.telemetry = f"http://127.0.0.1:{self.ports['telemetry']}/metrics"
        self._environment = self._addresses() | dict(environment or {})
        self._edit_alertmanager = alertmanager
        self.programs = {name: self._program(name) for name in names}

    def __getitem__(self, name: str) -> Program:
        return self.programs[name]

    def app_environment(self) -> dict[str, str]:
        """The two lines that an app exports."""
        return {
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.endpoint,
            "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20{quote(self.token)}",
        }

    def telemetry_value(self, name: str, *parts: str) -> float:
        """The sum of one of the collector's own metrics over the series whose labels have all ``parts``."""
        from urllib.request import urlopen

        with urlopen(self.telemetry, timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return sum(
            float(line.rsplit(" ", 1)[1])
            for line in lines
            if re.match(rf"{name}(__\w+)?(_total)?[{{ ]", line) and all(part in line for part in parts)
        )

    def start(self) -> Stack:
        try:
            for program in self.programs.values():
                program.start()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        for program in reversed(self.programs.values()):
            program.stop()

    def __enter__(self) -> Stack:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()

    # ------------------------------------------------------------------------------ what differs from what ships

    def _addresses(self) -> dict[str, str]:
        local = {role: f"127.0.0.1:{port}" for role, port in self.ports.items()}
        return {
            "CS_OTLP_TOKEN": self.token,
            "CS_HMAC_KEY": self.hmac_key,
            "CS_GRPC_LISTEN": local["grpc"],
            "CS_HTTP_LISTEN": local["http"],
            "CS_HEALTH_LISTEN": local["health"],
            "CS_TELEMETRY_HOST": "127.0.0.1",
            "CS_TELEMETRY_PORT": str(self.ports["telemetry"]),
            "CS_QUEUE_DIR": str(self.folder / "queue"),
            "CS_JAEGER_ENDPOINT": local["jaeger_otlp"],
            "CS_PROMETHEUS_ENDPOINT": f"http://{local['prometheus']}",
            "CS_JAEGER_OTLP_LISTEN": local["jaeger_otlp"],
            "CS_JAEGER_UI_LISTEN": local["jaeger_ui"],
            "CS_JAEGER_QUERY_LISTEN": local["jaeger_query"],
            "CS_JAEGER_HEALTH_LISTEN": local["jaeger_health"],
            "CS_JAEGER_TELEMETRY_HOST": "127.0.0.1",
            "CS_JAEGER_TELEMETRY_PORT": str(self.ports["jaeger_telemetry"]),
            "CS_JAEGER_DIR": str(self.folder / "jaeger"),
            "CS_JAEGER_UI_CONFIG": str(COLLECTOR / "jaeger-ui.json"),
        }

    def _prometheus_file(self) -> Path:
        text = (COLLECTOR / "prometheus.yml").read_text("utf-8")
        for address, role in (
            ("collector:8888", "telemetry"),
            ("jaeger:8888", "jaeger_telemetry"),
            ("localhost:9090", "prometheus"),
            ("alertmanager:9093", "alertmanager"),
        ):
            assert address in text, f"collector/prometheus.yml does not name {address}"
            text = text.replace(address, f"127.0.0.1:{self.ports[role]}")
        file = self.folder / "prometheus.yml"
        file.write_text(text, "utf-8")
        shutil.copytree(COLLECTOR / "rules", self.folder / "rules", dirs_exist_ok=True)
        return file

    def _alertmanager_file(self) -> Path:
        file = self.folder / "alertmanager.yml"
        file.write_text(self._edit_alertmanager((COLLECTOR / "alertmanager.yml").read_text("utf-8")), "utf-8")
        return file

    def _program(self, name: str) -> Program:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("CS_", "OTEL_"))}
        environment = inherited | self._environment
        listen, url = "--web.listen-address", "--web.external-url"
        local = {role: f"127.0.0.1:{port}" for role, port in self.ports.items()}
        if name == "collector":
            command = [BINARIES / "otelcol", "--config", COLLECTOR / "otelcol.yaml"]
            health = f"http://{local['health']}/"
        elif name == "jaeger":
            command = [BINARIES / "jaeger", "--config", COLLECTOR / "jaeger.yaml"]
            health = f"http://{local['jaeger_health']}/status"
        elif name == "prometheus":
            own = {"--config.file": self._prometheus_file(), "--storage.tsdb.path": self.folder / "prometheus"}
            own |= {listen: local["prometheus"], url: f"http://{local['prometheus']}"}
            command = [BINARIES / "prometheus", *_with(_flags("prometheus"), own)]
            health = f"http://{local['prometheus']}/-/ready"
        else:
            own = {"--config.file": self._alertmanager_file(), "--storage.path": self.folder / "alertmanager"}
            own |= {listen: local["alertmanager"], url: f"http://{local['alertmanager']}"}
            command = [BINARIES / "alertmanager", *_with(_flags("alertmanager"), own)]
            health = f"http://{local['alertmanager']}/-/ready"
        return Program(name, command, environment, self.folder, health)


def _with(flags: list[str], own: Mapping[str, object]) -> Iterator[str]:
    for flag in flags:
        if flag.partition("=")[0] not in own:
            yield flag
    for flag, value in own.items():
        yield f"{flag}={value}"


def main() -> None:
    """Starts the stack on the usual ports and says what to export; ends it all on Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="Where the data stays. Default: a folder that goes at the end.")
    parser.add_argument("--any-ports", action="store_true", help="Free ports instead of 4317, 4318, 9090, 9093, 16686.")
    arguments = parser.parse_args()
    given = {name: value for name, value in os.environ.items() if name.startswith("CS_")}
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with contextlib.ExitStack() as stack:
        folder = arguments.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="claudescope-stack-")))
        running = Stack(folder.resolve(), given, ports=None if arguments.any_ports else USUAL_PORTS)
        stack.callback(running.stop)
        for name, program in running.programs.items():
            print(f"{name:<14}", end="", flush=True)
            print(f"ready in {program.start():.1f} s; its log: {program.log}")
        print(f"\nJaeger         {running.jaeger.url} (its API: this build has no page)")
        print(f"Prometheus     {running.prometheus.url} (its API: this build has no page)")
        print(f"Alertmanager   {running.alertmanager_url}\n\nIn the app's shell:")
        for name, value in running.app_environment().items():
            print(f"  export {name}={value}")
        print("  claudescope run -- python app.py\n\nCtrl-C ends it all.", flush=True)
        while not ended.wait(1.0):
            for name, program in running.programs.items():
                if not program.running:
                    print(f"{name} has ended:\n{program.tail()}", file=sys.stderr)
                    ended.set()


if __name__ == "__main__":
    main()
