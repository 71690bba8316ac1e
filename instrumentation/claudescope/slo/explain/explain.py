"""From counts to an explanation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .calibration import Calibration
from .candidates import Candidate, Candidates
from .cells import Cells
from .chance import Chance
from .explanation import Explanation, Slice, Traces
from .narrow import narrowed
from .tuning import DEFAULT, Tuning
from .usual import quiet, usual

__all__ = ["calibrated", "explain"]


def explain(
    cells: Cells,
    *,
    traces: Traces | None = None,
    calibration: Calibration | None = None,
    noun: str = "events",
    seed: int = 0,
    history: bool = True,
    tuning: Tuning = DEFAULT,
) -> Explanation:
    """Which slices hold the bad events beyond what was to be expected of now's events.

    ``noun`` is what is counted (``steps``, ``calls``); ``traces`` gives examples of a slice, ``calibration`` the
    probability of the first one to be the cause. The same cells and seed give the same answer. Where nothing can be
    said, or nothing stands out, that is the answer, with its reason. Without ``history``, where there are no events in
    the baseline, now's slices are compared with one another, and the answer says so.
    """
    now = cells.now
    if not history and now.total and not cells.before.total:
        compared = explain(cells.against_itself(), traces=traces, noun=noun, seed=seed, tuning=tuning.in_one_window())
        return replace(compared, note="No history yet: compared with everything else in the same time.")
    baseline = quiet(narrowed(cells, tuning.least_bad), tuning)
    if not now.total or not baseline.before.total:
        when = "now" if not now.total else "in the baseline"
        return Explanation("insufficient_data", (), now, 0.0, f"There were no {noun} {when}.", noun)
    expected = usual(baseline, tuning)
    found = Candidates(baseline, expected, tuning)
    whole = found.all_expected
    if 0 < now.bad < tuning.least_bad:
        reason = f"{_bad(now.bad, noun)} are too few to tell where they come from."
        return Explanation("insufficient_data", (), now, whole, reason, noun)
    chance = Chance(found, expected.shape, seed)
    chosen = _chosen(found, chance)
    if not chosen:
        return Explanation("none", (), now, whole, "No slice stands out.", noun)
    if _everywhere(found, chosen):
        times = now.bad / whole
        reason = f"No slice stands out: there were {times:.2g} times as many bad {noun} as expected, in every part."
        return Explanation("none", (), now, whole, reason, noun)
    told = [*chosen, *_near(found, chosen)]
    excess = _whole_excess(found, chosen)
    slices = [
        Slice(
            labels=(labels := found.names(one)),
            bad=one.bad,
            total=found.total(one),
            expected=one.expected,
            share=min(1.0, one.excess / excess),
            p=chance.of(one.score),
            alternative=one not in chosen,
            traces=tuple(traces(labels))[:3] if traces and one in chosen else (),
        )
        for one in told
    ]
    return calibrated(Explanation("slices", tuple(slices), now, whole, "", noun), calibration)


def calibrated(explanation: Explanation, calibration: Calibration | None) -> Explanation:
    """The explanation with the probability that its first slice is the cause, where labelled cases say it."""
    if calibration is None or not explanation.slices:
        return explanation
    first, *others = explanation.slices
    probable = replace(first, probability=calibration.probability(first.llr))
    return replace(explanation, slices=(probable, *others))


def _chosen(found: Candidates, chance: Chance) -> list[Candidate]:
    """The best slice; then, of the events that it does not hold, the best one that does not overlap it; and so on."""
    tuning = found.tuning
    chosen: list[Candidate] = []
    while len(chosen) < tuning.most:
        for one in found.best(chosen):
            if any(one.overlaps(other) for other in chosen):
                continue
            if chosen and one.excess < tuning.least_share * _whole_excess(found, [*chosen, one]):
                continue
            rise = one.excess / found.all_expected
            if one.score * rise >= tuning.weight and chance.of(one.score) < tuning.alpha:
                chosen.append(one)
                break
        else:
            break
    return chosen


def _everywhere(found: Candidates, chosen: Sequence[Candidate]) -> bool:
    """Whether one factor for everything is more likely than these slices, and elsewhere is no place without a rise."""
    if found.everything() <= sum(one.score for one in chosen):
        return False
    score, expected = found.elsewhere(chosen)
    return score > found.tuning.label_cost or expected < found.tuning.least_share * found.all_expected


def _whole_excess(found: Candidates, chosen: Sequence[Candidate]) -> float:
    """Bad events beyond what was expected: of all, or of the slices where fewer than expected came elsewhere."""
    return max(found.all_bad - found.all_expected, sum(one.excess for one in chosen))


def _near(found: Candidates, chosen: list[Candidate]) -> list[Candidate]:
    """Other descriptions of the only slice's events, nearly as good; beside several slices they would confuse."""
    if len(chosen) > 1:
        return []
    least = found.tuning.near * chosen[0].score
    others = [one for one in found.best() if one not in chosen and one.score >= least and one.overlaps(chosen[0])]
    return others[: found.tuning.others]


def _bad(count: float, noun: str) -> str:
    return f"{count:g} bad {noun}"
