"""200 made-up secrets and personal details of 20 kinds, from a seed; none is real, and none is written in a file."""

from __future__ import annotations

import base64
import random
import string
from collections.abc import Callable

_ALNUM = string.ascii_letters + string.digits


def _text(rng: random.Random, length: int, alphabet: str = _ALNUM) -> str:
    return "".join(rng.choice(alphabet) for _ in range(length))


def _digits(rng: random.Random, length: int) -> str:
    return _text(rng, length, string.digits)


def _base64(rng: random.Random, length: int) -> str:
    return base64.urlsafe_b64encode(rng.randbytes(length)).decode().rstrip("=")


def _name(rng: random.Random) -> str:
    return _text(rng, 8, string.ascii_lowercase)


# each is a secret by itself; _PHRASES are the texts that people write it into
KINDS: dict[str, Callable[[random.Random], str]] = {
    "anthropic key": lambda rng: f"sk-ant-api03-{_text(rng, 60)}",
    "openai key": lambda rng: f"sk-proj-{_text(rng, 40)}",
    "aws key id": lambda rng: "AKIA" + _text(rng, 16, string.ascii_uppercase + string.digits),
    "github token": lambda rng: f"ghp_{_text(rng, 36)}",
    "gitlab token": lambda rng: f"glpat-{_text(rng, 20)}",
    "slack token": lambda rng: f"xoxb-{_digits(rng, 11)}-{_text(rng, 24)}",
    "stripe key": lambda rng: f"sk_live_{_text(rng, 24)}",
    "google key": lambda rng: f"AIza{_text(rng, 35)}",
    "hugging face token": lambda rng: f"hf_{_text(rng, 34)}",
    "sendgrid key": lambda rng: f"SG.{_text(rng, 22)}.{_text(rng, 43)}",
    "jwt": lambda rng: f"eyJ{_base64(rng, 18)}.{_base64(rng, 60)}.{_base64(rng, 32)}",
    "private key": lambda rng: (
        f"-----BEGIN RSA PRIVATE KEY-----\n{_text(rng, 64)}\n{_text(rng, 64)}\n-----END RSA PRIVATE KEY-----"
    ),
    "bearer": lambda rng: f"Bearer {_text(rng, 32)}",
    "password": lambda rng: f"password={_text(rng, 14)}",
    "credentials in a URL": lambda rng: f"postgres://app:{_text(rng, 16)}@db.internal/orders",
    "e-mail": lambda rng: f"{_name(rng)}.{_name(rng)}@{_name(rng)}.example",
    "card": lambda rng: f"4{_digits(rng, 3)} {_digits(rng, 4)} {_digits(rng, 4)} {_digits(rng, 4)}",
    "iban": lambda rng: " ".join(["DE" + _digits(rng, 2), *(_digits(rng, 4) for _ in range(4)), "12"]),
    "social security number": lambda rng: f"{_digits(rng, 3)}-{_digits(rng, 2)}-{_digits(rng, 4)}",
    "telephone": lambda rng: f"+49 30 {_digits(rng, 4)} {_digits(rng, 4)}",
}
_PHRASES = (
    "{}",
    "the customer wrote {} and left",
    '{{"note": "{}"}}',
    "first line\\n{}\\nlast line",
    "({})",
)


def planted(number: int = 200, seed: int = 7) -> list[tuple[str, str, str]]:
    """Kind, the secret itself, and a text that holds it."""
    rng = random.Random(seed)
    kinds = list(KINDS)
    found = []
    for index in range(number):
        kind = kinds[index % len(kinds)]
        secret = KINDS[kind](rng)
        found.append((kind, secret, _PHRASES[index // len(kinds) % len(_PHRASES)].format(secret)))
    assert len({secret for _, secret, _ in found}) == number
    return found


def core(kind: str, secret: str) -> str:
    """The part of it that must not be seen: for what only its surroundings make a secret, that without them."""
    if kind == "bearer":
        return secret.split()[1]
    if kind == "password":
        return secret.split("=")[1]
    if kind == "credentials in a URL":
        return secret.split(":")[2].split("@")[0]
    if kind == "private key":
        return secret.splitlines()[1]
    return secret
