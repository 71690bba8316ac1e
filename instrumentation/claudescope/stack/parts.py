"""Where each part of a running stack is reached from this machine, and with which secret."""

from __future__ import annotations

import base64
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from ..errors import UsageError
from .dotenv import read_dotenv
from .explainer import PROFILE, PROFILES, profiles
from .variables import VARIABLES, with_defaults

__all__ = ["Certificates", "Stack"]

_ANY: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}


class Certificates(NamedTuple):
    """Files in PEM: the authority that signed the OTLP ports' certificate, for one that this machine does not know, and
    the certificate and key to show there, where the ports want one.
    """

    ca: str | None = None
    certificate: str | None = None
    key: str | None = None

    def context(self) -> ssl.SSLContext:
        """What a connection needs. Raises OSError for a file that is not what it should be."""
        context = ssl.create_default_context(cafile=self.ca)
        if self.certificate is not None:
            context.load_cert_chain(self.certificate, self.key)
        return context


_NO_CERTIFICATES: Final = Certificates()


@dataclass(frozen=True)
class Stack:
    """The addresses of the parts, as base URLs without a slash at the end, and what to show them.

    ``otlp_grpc`` is ``host:port``. ``grafana_login`` is the value of an Authorization header, empty for none.
    ``grafana_page`` is where a browser has Grafana, which may be on another machine or behind a proxy.
    """

    folder: Path
    otlp_http: str
    otlp_grpc: str
    jaeger: str
    prometheus: str
    alertmanager: str
    grafana: str
    token: str
    grafana_login: str = ""
    certificates: Certificates = _NO_CERTIFICATES
    grafana_page: str = VARIABLES["CS_GRAFANA_URL"].default
    explainer: str = ""
    """Empty where the explainer is no part of it."""
    explainer_token: str = ""

    @property
    def tls(self) -> bool:
        """Whether the OTLP ports speak TLS."""
        return self.otlp_http.startswith("https:")

    @classmethod
    def load(
        cls, folder: Path, environ: Mapping[str, str] | None = None, certificates: Certificates = _NO_CERTIFICATES
    ) -> Stack:
        """The stack of ``folder``: as in Compose, the environment wins over the folder's ``.env``.

        ``GRAFANA_TOKEN``, a token of a service account, wins over the password. Raises UsageError for a ``.env``
        that cannot be read and for a port that is none.
        """
        env = os.environ if environ is None else environ
        file = read_dotenv(folder / ".env", env)
        given = {**file, **{name: env[name] for name in VARIABLES if env.get(name)}}
        values = with_defaults(given)
        chosen = {PROFILES: env.get(PROFILES) or file.get(PROFILES, "")}
        scheme = "https" if values["CS_RECEIVER"] == "otlp/tls" else "http"

        def at(bind: str, port: str) -> str:
            host = _ANY.get(values[bind].strip("[]"), values[bind].strip("[]"))
            number = values[port]
            if not (number.isascii() and number.isdigit() and 0 < int(number) < 65_536):
                raise UsageError(f"{port} is {number!r}.", "It takes a port: a whole number from 1 to 65535.")
            return f"[{host}]:{number}" if ":" in host else f"{host}:{number}"

        grafana_token = env.get("GRAFANA_TOKEN", "")
        password = values["CS_GRAFANA_PASSWORD"]
        login = f"Bearer {grafana_token}" if grafana_token else ""
        if password and not login:
            login = f"Basic {base64.b64encode(f'admin:{password}'.encode()).decode()}"
        return cls(
            folder=folder,
            otlp_http=f"{scheme}://{at('CS_OTLP_BIND', 'CS_OTLP_HTTP_PORT')}",
            otlp_grpc=at("CS_OTLP_BIND", "CS_OTLP_GRPC_PORT"),
            jaeger=f"http://{at('CS_UI_BIND', 'CS_JAEGER_PORT')}",
            prometheus=f"http://{at('CS_UI_BIND', 'CS_PROMETHEUS_PORT')}",
            alertmanager=f"http://{at('CS_UI_BIND', 'CS_ALERTMANAGER_PORT')}",
            grafana=f"http://{at('CS_UI_BIND', 'CS_GRAFANA_PORT')}",
            token=values["CS_OTLP_TOKEN"],
            grafana_login=login,
            certificates=certificates,
            grafana_page=given.get("CS_GRAFANA_URL") or f"http://localhost:{values['CS_GRAFANA_PORT']}",
            explainer=f"http://{at('CS_UI_BIND', 'CS_EXPLAINER_PORT')}" if PROFILE in profiles(chosen) else "",
            explainer_token=values["CS_EXPLAINER_TOKEN"],
        )
