"""Segmentation: exact step lists for real shapes of text, and the properties that hold for any text."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claudescope.steps.coherence import coherence_cuts, sentence_starts
from claudescope.steps.opaque import opaque_spans
from claudescope.steps.segment import LONG, LONGEST, Piece, segment

SENTENCE = "The pump fills the tank at a steady rate while the drain stays shut. "


def cut(text: str) -> list[tuple[str | None, str]]:
    return [(piece.name, text[piece.start : piece.end]) for piece in segment(text)]


@pytest.mark.parametrize("text", ["", "ok", "\n", "The steps are:\n1. Paris\n2. London\n3. Rome", SENTENCE * 4])
def test_short_text_is_one_step(text: str) -> None:
    assert segment(text) == [Piece(0, len(text), None)]


def test_explicit_steps_are_cut_however_short() -> None:
    text = "Let me see.\n\nStep 1: 17 * 20 = 340\nStep 2: 17 * 3 = 51\nStep 3: 391\n\nSo it is 391."
    assert cut(text) == [
        ("step 1", "Let me see.\n\nStep 1: 17 * 20 = 340\n"),
        ("step 2", "Step 2: 17 * 3 = 51\n"),
        ("step 3", "Step 3: 391\n\nSo it is 391."),
    ]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Step 1: a\n", "Step 2: b"),
        ("**Step 1**\na\n", "**Step 2**\nb"),
        ("### Step 1\na\n", "### Step 2\nb"),
        ("step one: a\n", "step two: b"),
        ("- **Step 1:** a\n", "- **Step 2:** b"),
        ("第一步：甲\n", "第二步：乙"),
        ("第1步，甲\n", "第2步，乙"),
        ("步骤一：甲\n", "步骤二：乙"),
        ("ステップ1：甲\n", "ステップ2：乙"),
        ("1단계: 가\n", "2단계: 나"),
        ("الخطوة 1: أ\n", "الخطوة 2: ب"),
        ("الخطوة الأولى: أ\n", "الخطوة الثانية: ب"),
        ("שלב 1: א\n", "שלב 2: ב"),
        ("Schritt 1: a\n", "Schritt 2: b"),
        ("Étape 1 - a\n", "Étape 2 - b"),
    ],
)
def test_explicit_steps_in_many_scripts(first: str, second: str) -> None:
    assert cut(first + second) == [("step 1", first), ("step 2", second)]


def test_the_mention_of_a_step_is_not_a_heading() -> None:
    text = "I check the loop.\nStep 2 is wrong because of the sign.\n第一步的结果是对的。"
    assert cut(text) == [(None, text)]


@pytest.mark.parametrize(
    ("markers", "names"),
    [
        (("1. ", "2. ", "3. "), ["1", "2", "3"]),
        (("1) ", "2) ", "3) "), ["1", "2", "3"]),
        (("(1) ", "(2) ", "(3) "), ["1", "2", "3"]),
        (("① ", "② ", "③ "), ["1", "2", "3"]),
        (("一、", "二、", "三、"), ["1", "2", "3"]),
        (("（一）", "（二）", "（三）"), ["1", "2", "3"]),
        (("十、", "十一、", "二十一、"), [None]),  # starts at ten: not the start of a list
        (("2. ", "4. ", "6. "), [None]),
        (("First, ", "Next, ", "Finally, "), [None, None, None]),
        (("首先，", "其次，", "最后，"), [None, None, None]),
    ],
)
def test_numbered_items_and_openings(markers: tuple[str, ...], names: list[str | None]) -> None:
    parts = [marker + SENTENCE * 2 + "\n" for marker in markers]
    text = "".join(parts)
    pieces = cut(text)
    assert [name for name, _ in pieces][: len(names)] == names
    if len(names) == 3:
        assert [part for _, part in pieces] == parts


def test_tiny_items_share_a_step_and_its_name_says_so() -> None:
    items = [f"{n}. item number {n} is here\n" for n in range(1, 13)]  # 25 characters each: three to a step of >= 60
    assert [name for name, _ in cut("".join(items))] == ["1-3", "4-6", "7-9", "10-12"]


def test_paragraphs_are_steps_and_small_ones_join() -> None:
    text = f"{SENTENCE * 3}\n\nShort one.\n\n{SENTENCE * 3}\n\n{SENTENCE * 3}\n\nDone."
    assert [part for _, part in cut(text)] == [
        f"{SENTENCE * 3}\n\n",
        f"Short one.\n\n{SENTENCE * 3}\n\n",
        f"{SENTENCE * 3}\n\nDone.",
    ]


def test_paragraphs_stay_in_a_step_that_has_a_successor() -> None:
    text = f"## Step 1\n\n{SENTENCE * 3}\n\n{SENTENCE * 3}\n\n## Step 2\n\n{SENTENCE}"
    assert [name for name, _ in cut(text)] == ["step 1", "step 2"]


def test_a_list_within_an_item_stays_in_it() -> None:
    sub = f"（1）{SENTENCE}\n（2）{SENTENCE}\n"
    text = f"一、{SENTENCE}\n二、{SENTENCE}\n{sub}三、{SENTENCE}\n"
    assert [name for name, _ in cut(text)] == ["1", "2", "3"]


def test_a_title_stands_with_what_follows() -> None:
    text = f"# {'A title long enough to be a step of its own, were it not a title ' * 2}\n\n## Part\n\n{SENTENCE * 4}"
    assert len(segment(text)) == 1


def test_a_passage_without_structure_is_cut_where_the_subject_changes() -> None:
    cats = "The cat sat on the mat and the cat looked at the dog near the house. " * 12
    rates = "Interest rates rose again in March as the central bank raised its rates. " * 12
    assert len(cats) + len(rates) > LONG
    assert [part for _, part in cut(cats + rates)] == [cats, rates]
    cats, rates = (
        "小猫坐在垫子上看着门外的小狗，小狗也看着小猫。" * 20,
        "中央银行在三月份再次上调了基准利率，市场利率随之上升。" * 20,
    )
    assert [part for _, part in cut(cats + rates)] == [cats, rates]


def test_coherence_takes_the_least_coherent_window() -> None:
    text = "Aa bb cc. Aa bb dd. Aa bb ee. Xx yy zz. Xx yy ww. Xx yy vv. "
    # Neighbours share 2 of 3 words (cosine 2/3), but for the pair across "ee. | Xx": 0. Only its windows hold a 0.
    assert coherence_cuts(text, 0, len(text), 5, 45, lambda at: True) == [text.index("Xx yy zz")]


def test_sentences() -> None:
    def sentences(text: str) -> list[str]:
        bounds = [0, *sentence_starts(text, 0, len(text)), len(text)]
        return [text[a:b] for a, b in itertools.pairwise(bounds)]

    assert sentences("It is 3.5 m, e.g. long. Dr. Ray said so! Did he? Yes.") == [
        "It is 3.5 m, e.g. long. ",
        "Dr. Ray said so! ",
        "Did he? ",
        "Yes.",
    ]
    assert sentences("答案是三。真的？是！好") == ["答案是三。", "真的？", "是！", "好"]
    assert sentences("هل هذا صحيح؟ نعم. انتهى") == ["هل هذا صحيح؟ ", "نعم. ", "انتهى"]
    assert sentences("זה נכון. באמת? כן") == ["זה נכון. ", "באמת? ", "כן"]


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("a\n```py\nx\n```\nb", ["```py\nx\n```"]),
        ("a\n```py\nx\n\n1. y", ["```py\nx\n\n1. y"]),
        ("~~~\n```\n~~~\n", ["~~~\n```\n~~~"]),
        ("````\n```\n````\nz", ["````\n```\n````"]),
        ("- ```\n  a\n  ```\n", ["- ```\n  a\n  ```"]),
        ("t\n| a | b |\n|---|---|\n| 1 | 2 |\nu", ["| a | b |\n|---|---|\n| 1 | 2 |"]),
        ("a | b\n--- | ---\n1 | 2\n\nu", ["a | b\n--- | ---\n1 | 2"]),
        ("either a | b or c\nd", []),
        ("x $$\na\n\nb\n$$ y", ["$$\na\n\nb\n$$"]),
        ("x \\[ a \\] y \\( b \\) z", ["\\[ a \\]", "\\( b \\)"]),
        ("it is $a. B$ here", ["$a. B$"]),
        ("it costs $5 or $6 here. And $7.", []),
        ("use `$x` and $$ never closed\n\nnext", ["`$x`", "$$ never closed"]),
        ("``a`b`` c", ["``a`b``"]),
        ("a \\$ b $ c", []),
    ],
)
def test_opaque_spans(text: str, spans: list[str]) -> None:
    assert [text[start:end] for start, end in opaque_spans(text)] == spans


# Parts that must stay whole, and lines that would be cut if they stood outside of them.
_INNER = st.lists(
    st.sampled_from(
        ["1. " + SENTENCE, "2. " + SENTENCE, "", "## Title", "Step 1: x", "Step 2: y", SENTENCE * 6, "首先，"]
    ),
    min_size=1,
    max_size=12,
).map("\n".join)
_OPAQUE = st.one_of(
    _INNER.map(lambda inner: f"```text\n{inner}\n```"),
    _INNER.map(lambda inner: f"~~~\n{inner}\n~~~"),
    _INNER.map(lambda inner: f"$$\n{inner}\n$$"),
    _INNER.map(lambda inner: f"\\[\n{inner}\n\\]"),
    st.integers(2, 40).map(lambda rows: "| Step 1: x | b |\n|---|---|\n" + "\n".join([f"| 1. | {SENTENCE} |"] * rows)),
    st.integers(1, 40).map(lambda n: f"${'a. B'}{' = 1. C' * n}$"),
)
_PROSE = st.sampled_from(
    [
        "Step 1: go\n",
        "Step 2: on\n",
        "1. " + SENTENCE * 2,
        "2. " + SENTENCE * 2,
        SENTENCE * 4,
        SENTENCE * 30,
        "好的。" * 300,
        "### Part\n",
    ]
)


@given(st.lists(st.tuples(_PROSE, _OPAQUE), min_size=1, max_size=6), st.none() | _INNER)
@settings(max_examples=150, deadline=None)
def test_never_cut_inside_fences_tables_and_formulas(parts: list[tuple[str, str]], unclosed: str | None) -> None:
    text, whole = "", []
    for prose, opaque in parts:
        text += f"{prose}\n\n"
        whole.append((len(text), len(text) + len(opaque)))
        text += f"{opaque}\n\n"
    if unclosed is not None:
        whole.append((len(text), len(text) + 4 + len(unclosed)))
        text += "```\n" + unclosed
    pieces = segment(text)
    assert "".join(text[piece.start : piece.end] for piece in pieces) == text
    for piece in pieces[1:]:
        assert not any(start < piece.start < end for start, end in whole)


_CHARACTERS = st.text(
    st.sampled_from("a1.\n\n\n `~|$\\[]()#*-:。，一第步①（）！S tep؟שב 2") | st.characters(codec="utf-8"), max_size=600
)


@given(_CHARACTERS | st.lists(_PROSE | _CHARACTERS).map("".join))
@settings(max_examples=300, deadline=None)
def test_the_pieces_joined_give_the_text(text: str) -> None:
    pieces = segment(text)
    assert pieces[0].start == 0
    assert pieces[-1].end == len(text)
    assert all(a.end == b.start for a, b in itertools.pairwise(pieces))
    assert len(pieces) == 1 or all(piece.end > piece.start for piece in pieces)
    for piece in pieces:
        assert piece.name is None or set(piece.name) <= set("step 0123456789-")


def test_a_text_beyond_the_ceiling_is_one_step() -> None:
    paragraph = SENTENCE * 3 + "\n\n"
    text = (paragraph * (LONGEST // len(paragraph) + 1))[: LONGEST + 1]
    assert segment(text) == [Piece(0, 1_000_001, None)]
    assert len(segment(text[:-1])) > 1  # at the ceiling it is cut as ever


_ADVERSARIAL = {
    "prose": SENTENCE,
    "han": "小猫坐在垫子上看着门外的小狗。",
    "backticks": "```a`b``c```d ",
    "dollars": "$5 ",
    "open display": "\\[ a ",
    "open inline": "\\( a ",
    "fences": "```\n~~~~\n",
    "blank": "\n",
    "blanks": " ",
    "stars": "**",
    "titles": "# a\n",
    "pipes": "|a|b|\n",
    "items": "1. a\n",
    "questions": "?",
    "paragraphs": "x" * 170 + "\n\n",
}


@pytest.mark.parametrize("unit", _ADVERSARIAL.values(), ids=_ADVERSARIAL.keys())
def test_time_is_linear(unit: str) -> None:
    def cost(size: int) -> float:
        text = (unit * (size // len(unit) + 1))[:size]
        best = float("inf")
        for _ in range(3):
            before = time.thread_time()
            segment(text)
            best = min(best, time.thread_time() - before)
        return best

    # Ten times the text costs about ten times as much; a quadratic part would make it a hundred.
    assert cost(100_000) < 25 * cost(10_000) + 0.005
