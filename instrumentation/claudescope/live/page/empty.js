// <cs-empty>: how to connect an app, while there is not a single step.
import { copy } from "./clipboard.js";
import { el, icon } from "./dom.js";

const WAYS = [
  ["way-run", "Any command", "Start the app under claudescope. It needs no change.", () => "claudescope run -- python app.py"],
  ["way-code", "Inside of the app", "One line before the first call.", () => "import claudescope; claudescope.instrument()"],
  ["way-otel", "OpenTelemetry", "Send what the app already makes here, over OTLP/HTTP.", () => `export OTEL_EXPORTER_OTLP_ENDPOINT=${location.origin}`],
];

class Empty extends HTMLElement {
  connectedCallback() {
    this.append(el("section.card.empty", { "aria-labelledby": "empty-title" },
      el("h2", { id: "empty-title" }, "Waiting for the first step"),
      el("p.quiet", {}, "Connect an app that uses Claude in one of three ways. Its steps show here while they happen."),
      el("ol.ways", {}, ...WAYS.map(([id, name, about, code]) => {
        const text = /** @type {() => string} */ (code)();
        const words = el("span", { "aria-live": "polite" }, "Copy");
        return el("li", {}, el("div", {}, el("h3", {}, String(name)), el("p.quiet", {}, String(about))),
          el("code", { id, tabIndex: 0, "aria-label": `${name}: ${text}` }, text),
          el("button.button.copy", { type: "button", "aria-label": `Copy: ${text}`, onclick: () => copy(words, text) }, icon("copy"), words));
      })),
      el("p.quiet", {}, "No app at hand? ", el("code", {}, "claudescope demo"), " shows example apps.")));
  }
}

customElements.define("cs-empty", Empty);
