"""From a condition to somebody who knows of it: alarms, channels, and what a restart or a broken receiver changes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from objectives_kit import FAST, Receiver, Store, objective

from claudescope.live.objectives.alarm import Alarm
from claudescope.live.objectives.alerts import Alert, absent_alert, canary_alert, notice, tier_alert
from claudescope.live.objectives.book import Book, Key, Told
from claudescope.live.objectives.canary import verdict
from claudescope.live.objectives.channels import Command, DeliveryError, Log, Webhook
from claudescope.live.objectives.outbox import Outbox
from claudescope.slo.burn import Counts
from claudescope.slo.objective import Canary, Notice
from claudescope.slo.rules.compiler import compile as compiled
from claudescope.slo.rules.rule import Alert as CompiledAlert
from claudescope.slo.window import Window

S = 1000


# ----------------------------------------------------------------------------------------------------------- alarms


def test_an_alarm_waits_fires_and_is_kept() -> None:
    """``for: 60s``, ``keep_firing_for: 30s``, an evaluation each 10 s, as Prometheus does it."""
    alarm = Alarm()
    seen = [(alarm.step(10 <= at < 120, at * S, 60 * S, 30 * S), alarm.state)[1] for at in range(0, 200, 10)]
    assert seen == ["inactive"] + ["pending"] * 6 + ["firing"] * 8 + ["inactive"] * 5
    assert alarm.resolved_ms == 150 * S
    assert alarm.step(True, 200 * S, 0, 0)
    assert (alarm.state, alarm.resolved_ms) == ("firing", None)


def test_an_alarm_that_does_not_wait_fires_at_once_and_a_gap_ends_what_waits() -> None:
    alarm = Alarm()
    assert alarm.step(True, 0, 0, 0)
    assert (alarm.state, alarm.fired_ms) == ("firing", 0)
    alarm.step(False, 10 * S, 0, 0)
    assert alarm.state == "inactive"
    alarm.step(True, 20 * S, 60 * S, 0)
    alarm.step(False, 30 * S, 60 * S, 0)
    alarm.step(True, 40 * S, 60 * S, 0)
    assert alarm.active_ms == 40 * S


def test_time_without_a_server_is_no_waiting_time() -> None:
    alarm = Alarm()
    alarm.step(True, 10 * S, 300 * S, 0)
    alarm.step(True, 20 * S, 300 * S, 0)
    again = Alarm.load(json.loads(json.dumps(alarm.dump())))
    again.step(True, 1020 * S, 300 * S, 0)  # 1000 s later: of its waiting time there are 10 s
    assert (again.state, again.active_ms) == ("pending", 1010 * S)
    again.step(True, 1020 * S + 3601 * S, 300 * S, 0)  # over an hour: begins anew
    assert again.active_ms == 4621 * S


# ----------------------------------------------------------------------------------------------------------- alerts


def test_an_alert_says_what_the_rules_say() -> None:
    one = objective(
        labels={"team": "a"}, alert_labels={"x": "1"}, page=Notice({"route": "phone"}, {"runbook": "r"}), target=0.99
    )
    alert = tier_alert(one, FAST, {"gen_ai_request_model": "m"}, Counts(20, 100), Counts(150, 1000), "http://h")
    assert alert.labels == {
        "alertname": "GoodBudgetBurn",
        "claudescope_slo": "app-good",
        "claudescope_slo_name": "good",
        "claudescope_slo_service": "app",
        "team": "a",
        "gen_ai_request_model": "m",
        "severity": "page",
        "x": "1",
        "burnrate_tier": "page-fast",
        "long": "1h",
        "short": "5m",
        "route": "phone",
    }
    assert set(alert.annotations) == {"summary", "description", "dashboard", "explanation", "runbook"}
    assert alert.annotations["explanation"] == "http://h/?slo=app-good"
    assert "burns its error budget 15.0 times as fast as allowed over 1h, for m" in alert.annotations["summary"]
    assert alert.annotations["description"].startswith("150 of 1000 events were bad in 1h (burn rate 15.00)")
    assert absent_alert(one, {}, 0, "").labels["burnrate_tier"] == "absent"


def test_a_notice_is_what_alertmanager_sends() -> None:
    firing = Alert({"a": "1", "b": "2"}, {"s": "x"}, 1_796_040_000_123)
    over = Alert({"a": "1", "b": "3"}, {"s": "y"}, 1_796_040_000_000, 1_796_040_060_000)
    body = notice("app-good", [firing, over], "webhook", "http://h")
    assert body["version"] == "4"
    assert (body["status"], body["truncatedAlerts"], body["receiver"]) == ("firing", 0, "webhook")
    assert (body["commonLabels"], body["commonAnnotations"]) == ({"a": "1"}, {})
    assert [alert["status"] for alert in body["alerts"]] == ["firing", "resolved"]
    assert body["alerts"][0]["startsAt"] == "2026-11-30T12:00:00.123Z"
    assert body["alerts"][0]["endsAt"] == "0001-01-01T00:00:00Z"
    assert body["alerts"][1]["endsAt"] == "2026-11-30T12:01:00.000Z"
    assert len(body["alerts"][0]["fingerprint"]) == 16
    assert notice("app-good", [over], "webhook", "")["status"] == "resolved"
    many = [Alert({"n": str(number)}) for number in range(205)]
    assert notice("x", many, "webhook", "")["truncatedAlerts"] == 5


def test_alerts_have_the_names_and_labels_of_the_compiled_ones() -> None:
    one = objective(
        tiers=(FAST,),
        labels={"owner": "a"},
        alert_labels={"team": "b"},
        page=Notice({"pager": "c"}),
        ticket=Notice({"board": "d"}),
        canary=Canary("claudescope_label_v", "new", "old"),
    )
    burns, absent, canary = (
        {"alertname": rule.name, **rule.labels}
        for group in compiled([one]).groups
        for rule in group.rules
        if isinstance(rule, CompiledAlert)
    )
    none = Counts(0, 0)
    assert tier_alert(one, FAST, {}, none, none, "").labels == burns
    assert absent_alert(one, {}, 0, "").labels == {**absent, "burnrate_tier": "absent"}
    assert canary_alert(one, {}, "", "").labels == {**canary, "burnrate_tier": "canary"}


# ----------------------------------------------------------------------------------------------------------- canary


def test_a_canary() -> None:
    rule = Canary("v", "new", "old", Window(1800))
    # p1 = .1, p2 = .02, pooled .06: z = .08 / sqrt(.06 * .94 * 2/1000) = 7.53
    assert "z = 7.5" in str(verdict(rule, 1e-4, Counts(100, 1000), Counts(20, 1000)))
    assert verdict(rule, 1e-4, Counts(9, 1000), Counts(0, 1000)) is None  # under ten events
    assert verdict(rule, 1e-4, Counts(0, 0), Counts(0, 1000)) is None
    # without a baseline its own share decides: 10 of 1000 where 1 is expected, P(X >= 10; 1) = 1e-7
    assert "10 of" not in str(verdict(rule, 1e-4, Counts(10, 1000), Counts(0, 0)))
    assert "may be" in str(verdict(rule, 1e-4, Counts(10, 1000), Counts(0, 0)))
    assert verdict(rule, 1e-4, Counts(10, 20_000), Counts(12, 20_000)) is None


# --------------------------------------------------------------------------------------------------------- channels


NOTICE = notice(
    "app-good",
    [Alert({"claudescope_slo": "app-good", "burnrate_tier": "t"}, {"summary": "s", "description": "d"})],
    "r",
    "",
)


async def test_a_webhook(receiver: Receiver) -> None:
    await Webhook(receiver.url, "secret").send(NOTICE)
    await Webhook(receiver.url).send(NOTICE)
    assert receiver.notices == [NOTICE, NOTICE]
    assert receiver.tokens == ["Bearer secret", None]
    for status, again in ((503, True), (429, True), (400, False), (302, False)):
        receiver.answers = [status]
        with pytest.raises(DeliveryError, match=str(status)) as caught:
            await Webhook(receiver.url).send(NOTICE)
        assert caught.value.again == again
    with pytest.raises(DeliveryError, match="cannot be reached"):
        await Webhook("http://127.0.0.1:9/").send(NOTICE)


async def test_a_server_that_is_no_web_server_and_one_that_never_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"

        def talk() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(10)
                connection.sendall(b"220 mail ready\r\n\r\n")

        thread = threading.Thread(target=talk)
        thread.start()
        with pytest.raises(DeliveryError, match=r"not HTTP|cannot be reached"):  # reset, where it was quicker
            await Webhook(url).send(NOTICE)
        thread.join()
        with pytest.raises(DeliveryError, match="cannot be reached"):
            await Webhook(url, timeout=0.2).send(NOTICE)


def script(folder: Path, code: str) -> str:
    """A command line that runs some code."""
    file = folder / "script.py"
    file.write_text(code)
    return f"{sys.executable} '{file}'"


async def test_a_command_gets_the_notice_and_no_shell(tmp_path: Path) -> None:
    line = script(tmp_path, "import sys, pathlib; pathlib.Path(sys.argv[1]).write_text(sys.stdin.read())")
    out = tmp_path / "out $(touch x)"
    await Command(f"{line} '{out}'").send(NOTICE)
    assert json.loads(out.read_text()) == NOTICE
    assert sorted(os.listdir(tmp_path)) == [out.name, "script.py"]


async def test_a_command_that_fails_or_takes_too_long(tmp_path: Path) -> None:
    with pytest.raises(DeliveryError, match="ended with 3: oh no"):
        await Command(script(tmp_path, "import sys; sys.stderr.write('oh no'); sys.exit(3)")).send(NOTICE)
    with pytest.raises(DeliveryError, match="cannot be started"):
        await Command(str(tmp_path / "nothing")).send(NOTICE)
    child = tmp_path / "child"
    line = f"sh -c 'echo $$ > {child}; exec sleep 60'"  # a shell is there at once, however busy the machine is
    with pytest.raises(DeliveryError, match="took over 3 s"):
        await Command(line, timeout=3).send(NOTICE)
    with pytest.raises(ProcessLookupError):
        os.kill(int(child.read_text()), 0)
    with pytest.raises(ValueError, match="a command"):
        Command(" ")


async def test_a_command_that_says_too_much_or_leaves_something_behind(tmp_path: Path) -> None:
    endless = script(tmp_path, "import os\nwhile True: os.write(2, b'no ' * 20_000)")
    with pytest.raises(DeliveryError, match="took over 2 s"):
        await Command(endless, timeout=2).send(NOTICE)
    with pytest.raises(DeliveryError, match=r"ended with 3: (no )*no\Z"):
        await Command("sh -c 'yes no | head -c 9999999 >&2; exit 3'", timeout=20).send(NOTICE)
    await Command("sh -c 'sleep 5 & exit 0'", timeout=3).send(NOTICE)  # taken, though its error output is open still
    await Command("true", timeout=3).send({**NOTICE, "big": "x" * 10_000_000})  # it need not read it


async def test_what_is_taken_is_taken_whatever_else_the_webhook_says() -> None:
    def server(said: bytes, pause: float) -> str:
        listener = socket.create_server(("127.0.0.1", 0))

        def talk() -> None:
            with listener, listener.accept()[0] as connection, contextlib.suppress(OSError):
                connection.recv(65536)
                for at in range(len(said)) if pause else (slice(None),):
                    connection.sendall(said[at : at + 1] if isinstance(at, int) else said)
                    time.sleep(pause)
                time.sleep(6)

        threading.Thread(target=talk, daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}/"

    taken = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx"
    await Webhook(server(taken, 0), timeout=2).send(NOTICE)
    with pytest.raises(DeliveryError, match="did not answer within 1 s"):
        await Webhook(server(b"HTTP/1.1 200 OK" + b"y" * 100, 0.1), timeout=0.5).send(NOTICE)


async def test_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        await Log().send(NOTICE)
    assert caplog.messages == ["claudescope: SLO app-good: t fires: s. d"]


# ----------------------------------------------------------------------------------------------------------- outbox


class Told_:
    """A channel that notes what it is told, and fails when it is to."""

    repeat_ms: int | None = 4 * 3_600_000

    def __init__(self, name: str = "webhook") -> None:
        self.name = name
        self.notices: list[list[tuple[str, str]]] = []
        self.failing: DeliveryError | None = None

    async def send(self, body: dict[str, Any]) -> None:
        if self.failing is not None:
            raise self.failing
        self.notices.append([(alert["labels"]["tier"], alert["status"]) for alert in body["alerts"]])


class Clock:
    start_ms = 1_796_040_000_000

    def __init__(self) -> None:
        self.now = self.start_ms / 1000

    def __call__(self) -> float:
        return self.now


def fire(book: Book, tier: str, at: int) -> Key:
    key, entry = book.entry("app-good", tier, {})
    entry.alarm.step(True, at, 0, 0)
    entry.alert = Alert({"tier": tier}, {}, at)
    book.touch(key)
    return key


def end(book: Book, key: Key, at: int) -> None:
    entry = book.entries[key]
    entry.alarm.step(False, at, 0, 0)
    assert entry.alert is not None
    entry.alert.ends_ms = at
    book.touch(key)


async def _nothing(work: Any) -> None:
    return None


async def test_each_channel_is_told_once_of_the_beginning_and_once_of_the_end() -> None:
    book, channel, clock = Book(), Told_(), Clock()
    outbox = Outbox(book, [channel], _nothing, "", clock)
    assert await outbox.deliver(channel, "app-good")
    assert channel.notices == []
    fast = fire(book, "fast", 1)
    for _ in range(3):
        assert await outbox.deliver(channel, "app-good")
    assert channel.notices == [[("fast", "firing")]]
    fire(book, "slow", 2)
    await outbox.deliver(channel, "app-good")
    assert channel.notices[1:] == [[("slow", "firing"), ("fast", "firing")]]  # all of the group
    end(book, fast, 3)
    for _ in range(3):
        await outbox.deliver(channel, "app-good")
    assert channel.notices[2:] == [[("fast", "resolved"), ("slow", "firing")]]
    clock.now += 4 * 3600 + 1
    await outbox.deliver(channel, "app-good")
    await outbox.deliver(channel, "app-good")
    assert channel.notices[3:] == [[("slow", "firing")]]


async def test_what_nobody_heard_of_needs_no_end() -> None:
    book, channel = Book(), Told_()
    outbox = Outbox(book, [channel], _nothing, "", Clock())
    channel.failing = DeliveryError("down")
    key = fire(book, "fast", 1)
    assert not await outbox.deliver(channel, "app-good")
    assert outbox.errors == {"webhook": "down"}
    end(book, key, 2)
    channel.failing = None
    assert await outbox.deliver(channel, "app-good")
    assert channel.notices == []
    await book.save(_nothing)
    assert book.entries == {}


async def test_a_notice_that_is_refused_for_good_is_not_sent_again() -> None:
    book, channel = Book(), Told_()
    outbox = Outbox(book, [channel], _nothing, "", Clock())
    channel.failing = DeliveryError("the webhook answered 400", again=False)
    fire(book, "fast", 1)
    assert await outbox.deliver(channel, "app-good")
    channel.failing = None
    assert await outbox.deliver(channel, "app-good")
    assert channel.notices == []
    assert outbox.errors == {"webhook": "the webhook answered 400"}


async def test_a_receiver_that_was_down_gets_it_later(receiver: Receiver) -> None:
    book = Book()
    receiver.answers = [503]
    outbox = Outbox(book, [Webhook(receiver.url), Told_("other")], _nothing, "http://h")
    fire(book, "fast", 1)
    running = asyncio.ensure_future(outbox.run())
    until = time.monotonic() + 30
    while not receiver.notices and time.monotonic() < until:
        await asyncio.sleep(0.05)
    running.cancel()
    assert [alert["labels"] for body in receiver.notices for alert in body["alerts"]] == [{"tier": "fast"}]
    assert len(receiver.tokens) == 2
    assert outbox.channels == ["webhook", "other"]


async def test_who_was_told_is_kept_over_a_restart(tmp_path: Path) -> None:
    store = Store(tmp_path)

    async def submit(work: Any) -> None:
        store.do(work)

    book = Book()
    book.load(store.db)
    fast, slow = fire(book, "fast", 1), fire(book, "slow", 2)
    book.entries[fast].told["webhook"] = Told("firing", Clock.start_ms)
    await book.save(submit)

    again = Book()
    again.load(store.db)
    assert again.entries == book.entries
    channel = Told_()
    await Outbox(again, [channel], submit, "", Clock()).deliver(channel, "app-good")
    assert channel.notices == [[("slow", "firing"), ("fast", "firing")]]  # for the new one; the other is of its group
    end(again, fast, 6)
    end(again, slow, 6)
    await Outbox(again, [channel], submit, "", Clock()).deliver(channel, "app-good")
    assert channel.notices[1:] == [[("fast", "resolved"), ("slow", "resolved")]]
    await again.save(submit)
    last = Book()
    last.load(store.db)
    assert last.entries == {}
    store.close()


async def test_a_save_that_fails_is_made_up_for(tmp_path: Path) -> None:
    store = Store(tmp_path)

    async def fail(work: Any) -> None:
        raise OSError("disk full")

    async def submit(work: Any) -> None:
        store.do(work)

    book = Book()
    book.load(store.db)
    fire(book, "fast", 1)
    with pytest.raises(OSError, match="disk full"):
        await book.save(fail)
    await book.save(submit)
    again = Book()
    again.load(store.db)
    assert list(again.entries) == [Key("app-good", "fast", "{}")]
    store.close()
