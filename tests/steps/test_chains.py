"""The book of tool uses: what it finds, forgets and costs."""

from __future__ import annotations

import time
from threading import Thread

from opentelemetry.trace import SpanContext

from claudescope.steps.chains import Asked, ChainBook
from claudescope.steps.model import Chain


def asked(n: int = 1) -> Asked:
    return Asked(Chain(id=f"{n:032x}"), SpanContext(n + 1, n + 1, is_remote=False), n, f"tool{n}")


def test_a_tool_use_is_found_again_and_again() -> None:
    book = ChainBook()
    first, second = asked(1), asked(2)
    book.register("a", first)
    book.register("b", second)
    assert book.claim(["b", "unknown", "a"]) == {"b": second, "a": first}
    assert list(book.claim(["b", "a"])) == ["b", "a"]  # the retry of a request
    assert book.claim([]) == {}


def test_the_oldest_leave_first_and_a_claim_counts_as_use() -> None:
    book = ChainBook(capacity=3)
    for name in "abc":
        book.register(name, asked())
    book.claim(["a"])
    book.register("d", asked())
    assert sorted(book.claim("abcd")) == ["a", "c", "d"]
    assert len(book) == 3


def test_an_entry_lives_for_an_hour_from_its_registration() -> None:
    now = 0.0
    book = ChainBook(clock=lambda: now)
    book.register("a", asked())
    now = 3599.9
    assert list(book.claim(["a"])) == ["a"]
    now = 3600.0
    assert book.claim(["a"]) == {}
    assert len(book) == 0
    book.register("a", asked())
    assert list(book.claim(["a"])) == ["a"]


def test_defaults() -> None:
    book = ChainBook()
    one = asked()
    for n in range(10_001):
        book.register(str(n), one)
    assert len(book) == 10_000
    assert list(book.claim(["0", "1", "10000"])) == ["1", "10000"]


def test_threads() -> None:
    book, found = ChainBook(capacity=100), []

    def work(n: int) -> None:
        for i in range(500):
            book.register(f"{n}-{i}", asked(n))
            found.append(len(book.claim([f"{n}-{i}", f"{n}-{i - 1}"])))

    threads = [Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4000
    assert len(book) == 100


def test_cheap_enough_for_the_apps_thread() -> None:
    book, one = ChainBook(), asked()
    best = float("inf")
    for _ in range(5):
        before = time.thread_time()
        for n in range(1000):
            book.register(str(n), one)
            book.claim((str(n),))
        best = min(best, (time.thread_time() - before) / 2000)
    assert best < 10e-6  # measured: about 0.5 us
