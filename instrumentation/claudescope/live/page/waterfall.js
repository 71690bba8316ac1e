// The waterfall of a run: a treegrid whose rows stand on one time axis. Only the rows in view are in the page.
import { el, onFrame, svg } from "./dom.js";
import { bars, cells, put, spanned } from "./row.js";
import { failingPath, chainConfidence, extent, place, roundTrips, rowsOf, tickText, ticks, zoomed } from "./timeline.js";

/** @typedef {import("./tree.js").Node} Node */
/** @typedef {import("./timeline.js").Row} Row */

const SPARE = 10; // rows beyond the view on each side
const COLUMNS = ["Call, step or tool", "Time", "Latency", "Confidence", "Chain", "Validity"];

export class Waterfall {
  axis = el("div.axis", { title: "Drag to look closer; double-click for the whole run" });
  head = el("div.w-row.w-head", { role: "row", "aria-rowindex": 1 },
    ...COLUMNS.map((name, at) => el(`div.c${at}`, { role: "columnheader" }, at === 1 ? el("span.hidden", {}, name) : name, at === 1 ? this.axis : null)));
  lines = el("div.lines", { "aria-hidden": "true" });
  wires = svg("svg.wires", { "aria-hidden": "true" });
  course = svg("svg.course", { "aria-hidden": "true" });
  body = el("div.w-body", { role: "rowgroup" });
  sizer = el("div.sizer", { role: "presentation" }, this.lines, this.wires, this.course, this.body);
  grid = el("div.waterfall", { role: "treegrid", "aria-label": "Calls, steps and tools on a time axis" },
    el("div.w-top", { role: "rowgroup" }, this.head), this.sizer);
  stale = true;
  widths = { axis: 0, lines: 0, course: 0 }; // read once a resize, since reading lays the page out

  /**
   * @param {{select: (id: string, moved: boolean) => void, open: () => void, close: () => void, zoom: () => void}} on `moved`: by an arrow key
   */
  constructor(on) {
    this.on = on;
    /** @type {Row[]} */
    this.rows = [];
    /** @type {Node[]} */
    this.roots = [];
    /** @type {Map<string, Node>} */
    this.nodes = new Map();
    /** @type {Set<string>} */
    this.collapsed = new Set();
    /** @type {Map<string, number>} row numbers by node id */
    this.places = new Map();
    /** @type {Map<string, HTMLElement>} the rows that are in the page */
    this.shown = new Map();
    this.whole = this.window = { from: 0, to: 1 };
    this.active = "";
    this.selected = "";
    this.rowHeight = 30;
    /** @type {(node: Node) => boolean} */
    this.dim = () => false;
    this.paths = failingPath([]);
    /** @type {Map<string, number>} */
    this.chain = new Map();
    /** @type {import("./timeline.js").Trip[]} */
    this.trips = [];
    this.listen();
    this.paint = this.paint.bind(this);
  }

  listen() {
    this.grid.addEventListener("scroll", () => onFrame(this.paint), { passive: true });
    this.grid.addEventListener("keydown", (event) => this.key(event));
    this.body.addEventListener("click", (event) => this.click(event));
    this.body.addEventListener("focusin", (event) => this.activate(idOf(event.target)));
    this.axis.addEventListener("pointerdown", (event) => this.drag(event));
    this.axis.addEventListener("dblclick", () => this.zoom(this.whole));
    this.grid.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    new ResizeObserver(() => {
      this.rowHeight = parseFloat(getComputedStyle(this.grid).getPropertyValue("--row")) || 30;
      this.widths = { axis: this.axis.clientWidth, lines: this.lines.clientWidth, course: this.course.clientWidth };
      this.refresh();
    }).observe(this.grid);
  }

  /** Shows a tree; what was collapsed, focused, scrolled and zoomed stays. @param {{nodes: Map<string, Node>, roots: Node[]}} tree */
  show({ nodes, roots }) {
    this.nodes = nodes;
    this.roots = roots;
    const whole = this.window.from === this.whole.from && this.window.to === this.whole.to;
    const all = rowsOf(roots).map((row) => row.node);
    this.whole = extent(all);
    if (whole) this.window = this.whole;
    this.paths = failingPath(all);
    this.chain = chainConfidence(all);
    this.trips = roundTrips(all);
    this.layout();
  }

  layout() {
    this.rows = rowsOf(this.roots, this.collapsed);
    this.places = new Map(this.rows.map((row, at) => [row.node.id, at]));
    if (!this.places.has(this.active)) this.active = this.rows[0]?.node.id ?? "";
    this.grid.setAttribute("aria-rowcount", String(this.rows.length + 1));
    this.refresh();
  }

  /** Makes the rows in view anew on the next frame. */
  refresh() {
    this.stale = true;
    onFrame(this.paint);
  }

  paint() {
    if (!this.grid.isConnected) return;
    const height = this.rowHeight;
    const first = Math.max(0, Math.floor(this.grid.scrollTop / height) - SPARE);
    const last = Math.min(this.rows.length, Math.ceil((this.grid.scrollTop + this.grid.clientHeight) / height) + SPARE);
    this.sizer.style.height = `${this.rows.length * height}px`;
    const focused = this.body.contains(document.activeElement);
    if (this.stale) this.axisTicks();
    const wanted = new Set(this.rows.slice(first, last).map((row) => row.node.id));
    if (this.active) wanted.add(this.active); // what has the focus stays in the page
    for (const [id, row] of this.shown) {
      if (!this.stale && wanted.has(id)) continue;
      row.remove();
      this.shown.delete(id);
    }
    for (const id of wanted) {
      if (this.shown.has(id)) continue;
      const at = this.places.get(id);
      if (at === undefined) continue;
      const row = this.row(this.rows[at], at);
      row.style.transform = `translateY(${at * height}px)`;
      this.shown.set(id, row);
      this.body.append(row);
    }
    if (focused && !this.body.contains(document.activeElement)) this.shown.get(this.active)?.focus({ preventScroll: true });
    this.stale = false;
    this.wire(first, last);
    this.plot(first, last);
  }

  axisTicks() {
    const width = this.widths.axis || 600;
    const marks = ticks(this.window, this.whole.from, Math.max(2, Math.floor(width / 84)));
    const at = (/** @type {number} */ us) => `${(100 * (us - this.window.from)) / (this.window.to - this.window.from)}%`;
    const room = this.window.to - (50 / width) * (this.window.to - this.window.from);
    this.axis.replaceChildren(...marks.filter((tick) => tick.at < room).map((tick) => put(el("span", {}, tickText(tick)), { left: at(tick.at) })));
    this.lines.replaceChildren(...marks.map((tick) => put(el("i"), { left: at(tick.at) })));
  }

  /** @param {Row} row @param {number} at */
  row({ node, level, position, setSize, expanded }, at) {
    const classes = ["w-row", node.kind, this.paths.path.has(node) ? "path" : this.paths.after.has(node) ? "after" : ""];
    if (node.failed) classes.push("failed");
    if (!node.own) classes.push("other");
    if (this.dim(node)) classes.push("dim");
    return el(`div.${classes.filter(Boolean).join(".")}`, {
      role: "row", tabIndex: node.id === this.active ? 0 : -1, "data-id": node.id, "aria-level": level, "aria-posinset": position,
      "aria-setsize": setSize, "aria-expanded": expanded, "aria-rowindex": at + 2, "aria-selected": node.id === this.selected,
    }, ...cells(node, level, expanded, bars(node, this.window, this.whole.from), this.chain.get(node.id)));
  }

  /** Lines of the tool round trips in view: asked, run, result taken. @param {number} first @param {number} last */
  wire(first, last) {
    const width = this.widths.lines;
    const middle = (/** @type {number} */ at) => (at + 0.5) * this.rowHeight;
    const x = (/** @type {number} */ us) => Math.min(width, Math.max(0, (width * (us - this.window.from)) / (this.window.to - this.window.from)));
    const paths = [];
    for (const { ask, run, taker } of this.trips) {
      const [from, by, to] = [ask, run, taker].map((node) => (node ? this.places.get(node.id) : undefined));
      if (from === undefined || by === undefined || Math.max(by, to ?? by) < first || Math.min(from, by) > last) continue;
      const lit = [ask.id, run.id].includes(this.active) ? ".lit" : "";
      const bad = run.failed ? ".bad" : "";
      const start = Math.max(x(run.start), 1);
      const off = this.rowHeight * 0.22;
      let d = `M${x(ask.end)} ${middle(from) + off}V${middle(by) - off * 1.6}${Math.abs(start - x(ask.end)) > 1 ? `H${start}` : ""}V${middle(by) - off}`;
      if (taker && to !== undefined) d += `M${x(run.end)} ${middle(by) + off}V${middle(to) - off * 1.6}H${Math.max(x(taker.start), 1)}V${middle(to) - off}`;
      paths.push(svg(`path.wire${lit}${bad}`, { d }));
    }
    this.wires.replaceChildren(...paths);
  }

  /** Confidence along the chain as a line from row to row. @param {number} first @param {number} last */
  plot(first, last) {
    const width = this.widths.course - 8;
    /** @type {string[]} */
    const points = [];
    const dots = [];
    const known = [...this.rows.entries()].filter(([, row]) => this.chain.has(row.node.id));
    const from = known.findLastIndex(([at]) => at < first);
    for (const [at, { node }] of known.slice(Math.max(0, from))) {
      const x = 4 + width * (this.chain.get(node.id) ?? 0);
      const y = (at + 0.5) * this.rowHeight;
      points.push(`${x},${y}`);
      if (node.step?.confidence !== null) dots.push(svg("circle", { cx: x, cy: y, r: 2 }));
      if (at > last) break;
    }
    this.course.replaceChildren(svg("polyline", { points: points.join(" ") }), ...dots);
  }

  /** @param {string} id */
  activate(id) {
    if (!id || id === this.active) return;
    const before = this.shown.get(this.active);
    if (before) before.tabIndex = -1;
    this.active = id;
    const now = this.shown.get(id);
    if (now) now.tabIndex = 0;
    onFrame(this.paint);
  }

  /** Marks the node whose detail is open, and shows it. @param {string} id "" for none @param {boolean} [focus] */
  select(id, focus = false) {
    this.shown.get(this.selected)?.setAttribute("aria-selected", "false");
    this.selected = id;
    if (!id) return;
    let closed = false;
    for (let at = this.nodes.get(id)?.parent; at; at = at.parent) closed = this.collapsed.delete(at.id) || closed;
    if (closed) this.layout();
    if (this.places.has(id)) this.go(id, focus);
    this.shown.get(id)?.setAttribute("aria-selected", "true");
  }

  /** Scrolls to a row, and gives it the focus. @param {string} id @param {boolean} [focus] */
  go(id, focus = true) {
    const at = this.places.get(id);
    if (at === undefined) return;
    this.activate(id);
    const top = this.grid.scrollTop;
    const height = this.rowHeight;
    const room = this.grid.clientHeight - this.head.offsetHeight - height;
    if (at * height < top) this.grid.scrollTop = at * height;
    else if (room > 0 && at * height > top + room) this.grid.scrollTop = at * height - room;
    this.paint();
    if (focus) this.shown.get(id)?.focus({ preventScroll: true });
  }

  /** @param {string} id @param {boolean} [open] */
  toggle(id, open = this.collapsed.has(id)) {
    if (open) this.collapsed.delete(id);
    else this.collapsed.add(id);
    this.layout();
    this.paint();
  }

  /** @param {MouseEvent} event */
  click(event) {
    const id = idOf(event.target);
    if (!id) return;
    if (event.target instanceof Element && event.target.closest("[data-twist]")) return this.toggle(id);
    this.go(id);
    this.on.select(id, false);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const at = this.places.get(this.active) ?? 0;
    const row = this.rows[at];
    if (!row) return;
    const page = Math.max(1, Math.floor(this.grid.clientHeight / this.rowHeight) - 2);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: this.rows.length - 1, PageDown: at + page, PageUp: at - page }[event.key];
    if (to !== undefined) this.walk(Math.min(Math.max(0, to), this.rows.length - 1));
    else if (event.key === "ArrowRight" && row.expanded === false) this.toggle(row.node.id, true);
    else if (event.key === "ArrowRight" && row.expanded) this.walk(at + 1);
    else if (event.key === "ArrowLeft" && row.expanded) this.toggle(row.node.id, false);
    else if (event.key === "ArrowLeft" && row.node.parent) this.walk(this.places.get(row.node.parent.id) ?? at);
    else if (event.key === "Enter" || event.key === " ") {
      if (this.selected === row.node.id) this.on.open();
      else this.on.select(row.node.id, false);
    } else if (event.key === "Escape" && this.selected) this.on.close();
    else if (event.key === "+" || event.key === "=") this.zoom(zoomed(this.window, this.whole, (row.node.start + row.node.end) / 2, 0.5));
    else if (event.key === "-") this.zoom(zoomed(this.window, this.whole, (row.node.start + row.node.end) / 2, 2));
    else if (event.key === "0") this.zoom(this.whole);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {number} at */
  walk(at) {
    const { id } = this.rows[at].node;
    this.go(id);
    if (this.selected) this.on.select(id, true);
  }

  /** @param {import("./timeline.js").Window} window */
  zoom(window) {
    this.window = window;
    this.refresh();
    this.on.zoom();
  }

  /** @param {number} clientX @returns {number} microseconds */
  moment(clientX) {
    const { left, width } = this.axis.getBoundingClientRect();
    const share = Math.min(1, Math.max(0, (clientX - left) / (width || 1)));
    return this.window.from + share * (this.window.to - this.window.from);
  }

  /** @param {PointerEvent} event */
  drag(event) {
    const start = this.moment(event.clientX);
    const frame = this.window;
    const chosen = el("b");
    this.axis.append(chosen);
    this.axis.setPointerCapture(event.pointerId);
    const range = (/** @type {PointerEvent} */ moved) => [start, this.moment(moved.clientX)].sort((a, b) => a - b);
    const move = (/** @type {PointerEvent} */ moved) => {
      const spot = place(frame, range(moved)[0], range(moved)[1]);
      if (spot) put(chosen, spanned(spot));
    };
    const ended = new AbortController();
    const end = (/** @type {PointerEvent} */ last) => {
      ended.abort();
      chosen.remove();
      const [from, to] = range(last);
      if (last.type === "pointerup" && to - from > (frame.to - frame.from) / 100) this.zoom({ from, to: Math.max(to, from + 10) });
    };
    for (const [name, listener] of /** @type {const} */ ([["pointermove", move], ["pointerup", end], ["pointercancel", end]])) {
      this.axis.addEventListener(name, listener, { signal: ended.signal });
    }
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    if (!event.ctrlKey) return;
    event.preventDefault();
    this.zoom(zoomed(this.window, this.whole, this.moment(event.clientX), event.deltaY > 0 ? 1.25 : 0.8));
  }
}

/** @param {EventTarget | null} target */
const idOf = (target) => (target instanceof Element ? target.closest("[data-id]")?.getAttribute("data-id") ?? "" : "");
