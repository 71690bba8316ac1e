"""An authority and what it signs, for TLS on loopback."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def certificates(folder: Path) -> Path:
    """``ca``, ``server`` and ``client``, each with ``.crt`` and ``.key``, for 127.0.0.1; gives their folder."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.fail("no openssl on PATH")
    target = folder / "certificates"
    target.mkdir()

    def run(*arguments: str) -> None:
        subprocess.run([openssl, *arguments], cwd=target, check=True, capture_output=True)

    new = ("-newkey", "rsa:2048", "-nodes")
    run("req", "-x509", *new, "-days", "2", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.crt")
    (target / "extensions").write_text("subjectAltName=IP:127.0.0.1\n")
    for name in ("server", "client"):
        run("req", *new, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr")
        signed = ("-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "extensions", "-days", "2")
        run("x509", "-req", "-in", f"{name}.csr", *signed, "-out", f"{name}.crt")
    return target
