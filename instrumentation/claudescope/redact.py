"""Secrets that can be told by their look or their name are replaced in what people wrote and claudescope emits.

That is, in every content mode: labels, names of runs and steps, reasons given by hand, and with content mode ``full``
the texts of prompts, answers and tools. What claudescope makes itself (numbers, codes, hashes) and what the API names
(models, ids, error types) goes out as it is. A secret that looks like any other word is not found.

A pattern is tried only where its literal occurs, and each repetition is bounded, so that the time is linear in the
text. Secrets inside a JSON string are found too, with quotes, slashes and letters escaped.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Final

__all__ = ["FAILED", "Redactor", "redact", "redact_label", "redact_value", "set_redactor"]

_logger = logging.getLogger(__name__)

Redactor = Callable[[str], str]

FAILED: Final = "[redaction failed]"
"""Stands for a whole text that could not be redacted."""


def _alone(literal: str) -> str:
    """The literal, not inside a word; the letter of an escape (backslash, n) before it makes no word."""
    return rf"{literal}(?:(?<![A-Za-z0-9]{literal})|(?<=\\[nrtbf]{literal}))"


_Q: Final = r"(?:\\{0,4}[\"']|\\{1,4}u0022)"
_BARE: Final = r"(?:[^\s\"'\\,;&<>(){}\[\]]|\\/)"
_REDACTED: Final = r"(?!\[redacted:)"

_PEM: Final = "-----{} [A-Z0-9 ]{{0,30}}PRIVATE KEY(?: BLOCK)?-----"

_SHAPES: Final[tuple[tuple[str, tuple[str, ...], str], ...]] = (
    (
        "private_key",
        ("PRIVATE KEY",),
        _PEM.format("BEGIN") + r"(?:[^-]|-(?!----END )){0,20000}(?:" + _PEM.format("END") + ")?",
    ),
    ("jwt", ("eyJ",), _alone("eyJ") + r"[\w-]{8,1000}\.[\w-]{8,8000}(?:\.[\w-]{0,2000})?"),
    ("anthropic_key", ("sk-ant-",), r"sk-ant-[\w-]{12,300}"),
    ("openai_key", ("sk-",), _alone("sk-") + r"(?=[\w-]{0,60}\d)[\w-]{20,300}"),
    (
        "stripe_key",
        ("_live_", "_test_", "whsec_"),
        r"(?:(?<![A-Za-z0-9])|(?<=\\[nrtbf]))(?:(?:sk|rk|pk)_(?:live|test)|whsec)_[A-Za-z0-9]{16,300}",
    ),
    (
        "aws_key_id",
        ("AKIA", "ASIA", "ABIA", "ACCA"),
        r"(?<![A-Z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Z0-9])",
    ),
    ("github_token", ("gh", "github_pat_"), r"(?:gh[pousr]_[A-Za-z0-9]{20,300}|github_pat_\w{20,300})"),
    ("gitlab_token", ("glpat-",), r"glpat-[\w-]{16,300}"),
    ("slack_token", ("xox", "xapp-"), r"(?:xox[abeoprs](?:\.xox[bp])?-[\w-]{10,300}|xapp-\d-[\w-]{10,300})"),
    ("slack_webhook", ("hooks.slack.com",), r"(?<=hooks\.slack\.com)\\{0,2}/services\\{0,2}/(?:\w|\\{0,2}/){10,120}"),
    ("google_key", ("AIza", "ya29.", "GOCSPX-"), r"(?:AIza[\w-]{30,60}|ya29\.[\w-]{16,2000}|GOCSPX-[\w-]{16,60})"),
    ("huggingface_token", ("hf_",), _alone("hf_") + r"[A-Za-z0-9]{20,100}"),
    ("npm_token", ("npm_",), _alone("npm_") + r"[A-Za-z0-9]{30,60}"),
    ("pypi_token", ("pypi-",), _alone("pypi-") + r"(?=[\w-]{0,60}\d)[\w-]{30,400}"),
    ("sendgrid_key", ("SG.",), r"SG\.[\w-]{16,40}\.[\w-]{16,80}"),
)
_COMPILED: Final = tuple((kind, needles, re.compile(pattern, re.ASCII)) for kind, needles, pattern in _SHAPES)

_SURE: Final = (
    r"api[-_ ]?key|secret[-_ ]?access[-_ ]?key|access[-_ ]?key|account[-_ ]?key|private[-_ ]?key|encryption[-_ ]?key"
    r"|signing[-_ ]?key|client[-_ ]?secret|passwd|password|passphrase|pwd"
)
_LIKELY: Final = r"secret[-_ ]?key|secret|token|credentials?|connection[-_ ]?string"

_NAMED: Final[tuple[tuple[str, tuple[str, ...], re.Pattern[str]], ...]] = (
    (
        "authorization",
        ("authorization",),
        re.compile(
            rf"(?i)(authorization{_Q}?\s{{0,3}}[:=]\s{{0,3}}{_Q}?(?:(?:bearer|basic|token|digest|apikey|negotiate)\s+)?)"
            rf"{_REDACTED}(?!(?:bearer|basic|token|digest|apikey|negotiate)\b){_BARE}{{6,4000}}"
        ),
    ),
    ("bearer", ("bearer",), re.compile(r"(?i)(\bbearer\s{1,3})(?=[\w.~+/=-]{0,60}\d)[\w.~+/=-]{12,4000}")),
    (
        "cookie",
        ("cookie",),
        re.compile(
            r"(?i)(\b(?:set-)?cookie[\"']?\s{0,3}:\s{0,3}[\"']?)" + _REDACTED + r"(?=[\w.-]{1,80}=)[^\r\n\"'\\]{6,4000}"
        ),
    ),
    (
        "password",
        ("://", ":\\/\\/"),
        re.compile(
            rf"(?i)([a-z][a-z0-9+.-]{{1,20}}:(?:\\?/){{2}}[^\s/:@\"'<>\\]{{0,100}}:){_REDACTED}[^\s/@\"'<>\\]{{1,200}}(?=@)"
        ),
    ),
    (
        "signature",
        ("x-amz-", "sig="),
        re.compile(
            r"(?i)((?:x-amz-(?:signature|credential|security-token)|[?&]sig)=)" + _REDACTED + r"[\w%+/=.~-]{8,2000}"
        ),
    ),
    (
        "secret",
        ("key", "passw", "passphrase", "pwd", "secret", "token", "credential", "connection"),
        re.compile(
            rf"(?i)((?P<sure>{_SURE})|(?P<likely>{_LIKELY}))(?P<sep>{_Q}?\s{{0,3}}(?:=>|:=|=|:)\s{{0,3}})"
            rf"(?:(?P<q>{_Q}){_REDACTED}(?P<quoted>(?:(?!(?<!\\)(?P=q))[^\r\n]){{1,2000}})"
            rf"|{_REDACTED}(?P<bare>{_BARE}{{4,2000}}))"
        ),
    ),
)

_ESCAPED: Final = re.compile(r"\\u00([2-7][0-9a-fA-F])")
_HAS_DIGIT: Final = re.compile(r"\d")
_BLANK: Final = re.compile(r"\s")
_NAME: Final = re.compile(rf"(?i)(?:(?P<sure>{_SURE}|authorization|cookie)|{_LIKELY})$")

_SHORT: Final = 12

_own: Redactor | None = None


def set_redactor(redactor: Redactor | None) -> None:
    """A redactor of the user's own, called with each text after the built-in one; None takes it away.

    If it raises or gives no string, the whole text becomes ``[redaction failed]``.
    """
    global _own
    _own = redactor


def redact(text: str) -> str:
    """The text with each secret replaced by ``[redacted:kind]``. Never raises."""
    try:
        redacted = _built_in(text)
        if "\\u00" in text:
            plain = _ESCAPED.sub(_character, text)
            if (found := _built_in(plain)) != plain and found.count("[redacted:") > redacted.count("[redacted:"):
                redacted = found
        if _own is not None:
            redacted = _own(redacted)
            if not isinstance(redacted, str):
                raise TypeError(f"the redactor gave {type(redacted).__name__}, not str")
    except Exception:
        _logger.exception("claudescope: redaction failed; the text is dropped")
        return FAILED
    return redacted


def redact_value(name: str, value: str) -> str:
    """The value of a JSON member, redacted as a whole when the member's name says that it is a secret."""
    match = _NAME.search(name)
    if match is not None and _looks_secret(value, match["sure"] is not None):
        return "[redacted:secret]"
    return redact(value)


def redact_label(name: str, value: str) -> str:
    """The value of a label, or a name, whose own ``name`` is then empty.

    Cheap, for the app's thread: one too short for a secret is looked at by a redactor of the user's own only.
    """
    if len(value) <= _SHORT and _own is None and not _NAME.search(name):
        return value
    return redact_value(name, value)


def _built_in(text: str) -> str:
    for kind, needles, pattern in _COMPILED:
        if any(needle in text for needle in needles):
            text = pattern.sub(f"[redacted:{kind}]", text)
    lower = text.lower()
    for kind, needles, pattern in _NAMED:
        if any(needle in lower for needle in needles):
            text = pattern.sub(_named if kind == "secret" else rf"\g<1>[redacted:{kind}]", text)
    return text


def _named(match: re.Match[str]) -> str:
    """A named value, unless the name is a common word and the value does not look like a secret."""
    value = match["quoted"] or match["bare"]
    if match["bare"] is not None and "=" not in match["sep"]:
        secret = len(value) >= 6 and bool(_HAS_DIGIT.search(value))  # "password: at least eight letters" is prose
    else:
        secret = _looks_secret(value, match["sure"] is not None)
    if not secret:
        return match[0]
    return f"{match[1]}{match['sep']}{match['q'] or ''}[redacted:secret]"


def _looks_secret(value: str, sure: bool) -> bool:
    return bool(value.strip()) if sure else len(value) >= 8 and not _BLANK.search(value)


def _character(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    return character if character.isalnum() or character in "-_./:=@+" else match[0]
