"""The pages for people: a list of alerts, and one alert with its explanation. No script; everything is escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final
from urllib.parse import urlencode

from .queue import Kept
from .ticket import Ticket, clock

__all__ = ["STYLE", "explanation", "listing"]

STYLE: Final = """\
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; } h2 { font-size: 1.05rem; margin-top: 2rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; padding: .75rem; border: 1px solid #8888; border-radius: 4px; }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; padding: .25rem .75rem .25rem 0; }
td { border-top: 1px solid #8884; vertical-align: top; overflow-wrap: anywhere; }
img { max-width: 100%; background: #fff; }
.firing { color: #d55e00; font-weight: 600; }
"""


def _document(title: str, body: str, top: str = "") -> str:
    """``top`` is the way from the page to the explainer's address: it may be behind a proxy, under a path."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{escape(title)}</title><link rel="stylesheet" href="{top}style.css"></head><body>{body}</body></html>'
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Cells are HTML."""
    top = "".join(f"<th>{escape(name)}</th>" for name in head)
    lines = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{lines}</tbody></table>"


def _link(url: str, text: str) -> str:
    return f'<a href="{escape(url)}">{escape(text)}</a>'


def _state(kept: Kept) -> str:
    ends = kept.alert.ends
    return '<span class="firing">firing</span>' if ends is None else f"ended {clock(ends)}"


def _verdict(kept: Kept) -> str:
    if kept.report is None:
        return "waits to be explained"
    verdict = (kept.report.get("explanation") or {}).get("verdict")
    said = {"slices": "explained", "none": "no slice stands out", "insufficient_data": "too little data"}
    return said.get(str(verdict), "not explained")


def listing(found: Sequence[Ticket], labels: Mapping[str, str]) -> str:
    """The list; ``labels`` are those that were asked for."""
    rows = [
        (
            _link(f"explanations/{kept.alert.fingerprint}?starts={kept.alert.starts}", clock(kept.alert.starts)),
            escape(kept.alert.objective),
            escape(kept.alert.severity),
            escape(kept.alert.labels.get("burnrate_tier", "")),
            _state(kept),
            escape(ticket.slice or _verdict(kept)),
        )
        for ticket in found
        for kept in (ticket.kept,)
    ]
    asked = ", ".join(f"{key}={value}" for key, value in labels.items())
    head = f"<h1>Alerts of objectives{f' with {escape(asked)}' if asked else ''}</h1>"
    if labels:
        head += f"<p>{_link('explanations', 'all of them')}</p>"
    body = _table(("since", "objective", "severity", "tier", "state", "explanation"), rows)
    return _document("Alerts of objectives", head + (body if rows else "<p>There are none.</p>"))


def explanation(ticket: Ticket, states: Sequence[Mapping[str, Any]]) -> str:
    """One alert; ``states`` is what was done for it."""
    kept, alert = ticket.kept, ticket.kept.alert
    here = f"{alert.fingerprint}?{urlencode({'starts': alert.starts})}"
    parts = [f"<p>{_link('../explanations', 'all alerts')}</p><h1>{escape(ticket.title)}</h1><p>{_state(kept)}</p>"]
    if (kept.report or {}).get("svg"):
        parts.append(
            f'<p><img src="{escape(here)}&amp;format=svg" alt="The slices that burn, as in the text below"></p>'
        )
    parts.append(f"<pre>{escape(ticket.text())}</pre>")
    links = [_link(link, name) for name, link in ticket.links_by_name().items() if name != "explanation"]
    for found in (kept.report or {}).get("traces", []):
        links.append(_link(found["url"], f"trace {found['id'][:8]}") if found["url"] else escape(found["id"]))
    links += [_link(f"{here}&format={form}", form) for form in ("json", "text")]
    parts.append(f"<p>{' · '.join(links)}</p>")
    rows = [tuple(escape(str(state[key])) for key in ("place", "phase", "state", "ref", "problem")) for state in states]
    parts.append(f"<h2>What was done</h2>{_table(('place', 'what', 'state', 'made', 'problem'), rows)}")
    return _document(ticket.title, "".join(parts), "../")
