"""Every shape is found when redaction is off (it stands in the text) and gone when it is on."""

import json
import os
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claudescope.redact import FAILED, redact, set_redactor

# Made up here, in pieces, so that no scanner of repositories takes them for real ones.
LETTERS = "aB3dE5gH7jK9mN1pQ2sT4vW6yZ8bC0dF" * 4
SECRETS = {
    "anthropic_key": "sk-" + "ant-api03-" + LETTERS[:60],
    "openai_key": "sk-" + "proj-" + LETTERS[:48],
    "stripe_key": "sk_" + "live_" + LETTERS[:24],
    "aws_key_id": "AKIA" + "IOSFODNN7EXAMPLE",
    "github_token": "ghp" + "_" + LETTERS[:36],
    "gitlab_token": "glpat" + "-" + LETTERS[:20],
    "slack_token": "xoxb" + "-123456789012-" + LETTERS[:24],
    "slack_webhook": "/services/" + "T00000000/B00000000/" + LETTERS[:24],
    "google_key": "AIza" + LETTERS[:35],
    "huggingface_token": "hf" + "_" + LETTERS[:34],
    "npm_token": "npm" + "_" + LETTERS[:36],
    "pypi_token": "pypi" + "-" + LETTERS[:60],
    "sendgrid_key": "SG" + "." + LETTERS[:22] + "." + LETTERS[:43],
    "jwt": "eyJ" + LETTERS[:20] + "." + "eyJ" + LETTERS[:40] + "." + LETTERS[:43],
    "private_key": "-----BEGIN RSA " + "PRIVATE KEY-----\n" + LETTERS + "\n-----END RSA " + "PRIVATE KEY-----",
}
MORE = {
    "anthropic_key": ["sk-" + "ant-oat01-" + LETTERS[:50]],
    "github_token": [f"{kind}_{LETTERS[:36]}" for kind in ("gho", "ghu", "ghs", "ghr")]
    + ["github_" + "pat_" + LETTERS[:82]],
    "slack_token": [f"xox{kind}-{LETTERS[:30]}" for kind in "aprs"] + ["xapp" + "-1-" + LETTERS[:30]],
}
WORD = "h0nter2-Xy9"
NAMED = [
    "password={}",
    "PASSWORD = {}",
    "DB_PASSWORD={}",
    "dbPassword: '{}'",
    'password="{}"',
    "--password={}",
    '"api_key": "{}"',
    "'apiKey': '{}'",
    '{{"db": {{"password": "{}", "port": 5432}}}}',
    '{{\\"password\\": \\"{}\\"}}',
    '{{\\\\\\"password\\\\\\": \\\\\\"{}\\\\\\"}}',
    "ANTHROPIC_API_KEY={}",
    "export SECRET_KEY='{}'",
    "client_secret: {}",
    "aws_secret_access_key = {}/wJalr",
    "AccountKey={}==;EndpointSuffix=core.windows.net",
    "x-api-key: {}",
    "Authorization: Bearer {}",
    "authorization: Basic {}",
    "'Authorization': 'Bearer {}'",
    '{{"authorization": "Bearer {}"}}',
    "curl -H 'Authorization: token {}'",
    "the bearer {}123456 was sent",
    "Cookie: session={}; theme=dark",
    "postgresql://admin:{}@db.example:5432/app",
    "redis://:{}@cache:6379/0",
    "postgres:\\/\\/admin:{}@db.example",
    "https://s3.example/x?X-Amz-Signature={}12",
    "https://blob.example/x?sv=1&sig={}%3D",
    "access_token={}",
    '"refresh_token":"{}"',
]


def everyone():
    for kind, secret in SECRETS.items():
        yield kind, secret
    for kind, secrets in MORE.items():
        for secret in secrets:
            yield kind, secret


@pytest.fixture(autouse=True)
def no_redactor_of_the_users():
    set_redactor(None)
    yield
    set_redactor(None)


@pytest.mark.parametrize(("kind", "secret"), list(everyone()))
@pytest.mark.parametrize(
    "frame",
    [
        "{}",
        "the key is {}.",
        'x = "{}"',
        "line\\n{}\\nnext",
        '{{\\"k\\": \\"{}\\"}}',
        "<{}>",
        "这是{}密钥",
        "a\n\t{}\n",
    ],
)
def test_shapes(kind, secret, frame):
    before = "hooks.slack.com" if kind == "slack_webhook" else ""
    text = frame.format(before + secret)
    assert secret in text
    shown = redact(text)
    assert secret not in shown
    assert secret[-20:] not in shown
    assert shown == frame.format(f"{before}[redacted:{kind}]")


@pytest.mark.parametrize("frame", NAMED)
@pytest.mark.parametrize("around", ["{}", "before it\n{}\nafter it", "I ran `{}` and it worked"])
def test_named_values(frame, around):
    text = around.format(frame.format(WORD))
    assert WORD in text
    shown = redact(text)
    assert WORD not in shown
    assert "[redacted:" in shown
    if "after" in around:
        assert shown.endswith("after it")


@pytest.mark.parametrize("secret", [SECRETS[kind] for kind in ("anthropic_key", "github_token", "private_key", "jwt")])
def test_in_json_once_and_twice_encoded(secret):
    for text in (json.dumps({"note": f"use {secret} now"}), json.dumps(json.dumps({"note": f"use {secret} now"}))):
        shown = redact(text)
        assert LETTERS[:20] not in shown
        json.loads(shown)  # what was JSON still is


def test_a_secret_behind_unicode_escapes():
    secret = SECRETS["anthropic_key"]
    text = '{"key_note": "' + "".join(f"\\u{ord(c):04x}" if n % 3 == 0 else c for n, c in enumerate(secret)) + '"}'
    assert json.loads(text)["key_note"] == secret
    assert json.loads(redact(text))["key_note"] == "[redacted:anthropic_key]"
    harmless = '{"a": "\\u0041bc \\u00e9"}'
    assert redact(harmless) == harmless


def test_quotes_inside_a_quoted_password():
    text = json.dumps({"password": 'pa"ss\\word', "user": "me"})
    shown = redact(text)
    assert "ss" not in shown.replace("password", "")
    assert json.loads(shown) == {"password": "[redacted:secret]", "user": "me"}


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens: 1024, input_tokens=77, the token count is 12",
        "Your password: it must have at least eight characters.",
        "Choose a password and keep it secret.",
        "The key = the thing that opens the door",
        "sk-learn is a library; task-force-multiplication-table-for-children",
        "a risk-averse-investor-who-never-sleeps-well-2024",
        "bearer authentication is described in RFC 6750",
        "http://example.com:8080/path?x=1 and mailto:me@example.com",
        "see https://user@example.com/ and git@github.com:a/b.git",
        "The signature 'EqQBCgIYAhIM' belongs to the thinking block",
        '{"token_type": "input", "secretary": "Ms. Lee", "tokenizer": "bpe-32000"}',
        "eyJ is how base64 of JSON begins",
        "msg_01XFDUDYJgAACzvnptvVoYEL toolu_01A09q90qw90lq917835lq9 req_011CSHoEeqs5C35K2UUqR7Fy",
        "密码：请至少输入八个字符",
    ],
)
def test_ordinary_text_stays(text):
    assert redact(text) == text


def test_recorded_traffic_stays():
    """The false positives on 90,000 lines of real requests and answers, none of which holds a secret in clear."""
    folder = Path(__file__).parents[2].parent / "shared" / "cassettes"
    if not folder.is_dir():
        assert os.environ.get("CI") != "true", f"{folder} is missing"
        pytest.skip("the recorded traffic is not here")
    changed = [
        line
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        for line in path.read_text("utf-8", "replace").splitlines()
        if redact(line) != line
    ]
    # the API's own credit token is one, in so far as it is worth money
    assert all('"fallback_credit_token"' in line for line in changed)
    assert len(changed) == 2


def test_redaction_is_idempotent():
    for _, secret in everyone():
        for frame in ("{}", "password={}", '"api_key": "{}"', "Authorization: Bearer {}"):
            once = redact(frame.format(secret))
            assert redact(once) == once


@given(st.text(max_size=300))
@settings(max_examples=150, deadline=None)
def test_any_text_is_survived(text):
    assert isinstance(redact(text), str)


@pytest.mark.parametrize(
    "unit",
    [
        "sk-",
        "eyJa-",
        "password",
        "password=",
        '"token": "',
        "://a:",
        "-----BEGIN PRIVATE KEY-----",
        "bearer a",
        "\\",
        "\\u0041",
        "a" * 50 + "://",
        "xoxb-",
        "x-amz-signature=",
        "cookie: a",
        "authorization: ",
        "[redacted:",
        "eyJaaaaaaaa.",
        "secret secret",
    ],
)
def test_time_is_linear(unit):
    def cpu(size):
        text = unit * (size // len(unit))
        start = time.thread_time()
        redact(text)
        return time.thread_time() - start

    cpu(1000)
    small = min(cpu(20_000) for _ in range(3))
    # ten times the text; quadratic time would be a hundred times
    assert cpu(200_000) < 35 * small + 0.02


def test_the_users_own_redactor_comes_after():
    set_redactor(lambda text: text.replace("Smith", "[name]"))
    assert redact(f"Smith has {SECRETS['anthropic_key']}") == "[name] has [redacted:anthropic_key]"


def test_a_redactor_that_fails_drops_the_text(caplog):
    def broken(text):
        raise RuntimeError("no")

    set_redactor(broken)
    assert redact("plain") == FAILED == "[redaction failed]"
    set_redactor(lambda text: None)
    assert redact("plain") == FAILED
    assert "plain" not in caplog.text
