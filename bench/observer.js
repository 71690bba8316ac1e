// Watches the page for what `step_stream.py --probes` sends; put into the page by `live.py`, no part of it.
(() => {
  const found = { cells: [], nodes: {}, frames: 0 };
  const channel = new MessageChannel();
  const wall = () => performance.timeOrigin + performance.now();

  /** The largest canvas of the page, shadow roots included: the heat strip. */
  const strip = () => {
    const all = [];
    const walk = (root) => {
      for (const element of root.querySelectorAll("*")) {
        if (element instanceof HTMLCanvasElement) all.push(element);
        if (element.shadowRoot) walk(element.shadowRoot);
      }
    };
    walk(document);
    return all.sort((a, b) => b.width * b.height - a.width * a.height)[0] ?? null;
  };
  const pixels = (canvas, x, width) => canvas.getContext("2d").getImageData(x, 0, width, canvas.height).data;
  const colour = (data, at) => (data[at] << 16) | (data[at + 1] << 8) | data[at + 2];

  let watch = null; // {x, rows: [y], palette: Map colour -> level}
  let levels = [];
  let pending = [];

  // A task that is posted in a frame runs after that frame was painted.
  channel.port1.onmessage = () => {
    const at = wall();
    for (const name of pending) found.nodes[name] ??= at;
    pending = [];
    if (!watch) return;
    const canvas = strip();
    const data = pixels(canvas, watch.x, 1);
    watch.rows.forEach((y, row) => {
      const level = watch.palette.get(colour(data, y * 4)) ?? -1;
      if (level === levels[row]) return;
      if (level > levels[row]) found.cells.push([row, level, at]);
      levels[row] = level;
    });
  };
  new MutationObserver((records) => {
    for (const record of records) {
      for (const node of record.addedNodes) {
        for (const [name] of (node.textContent ?? "").matchAll(/probe-\d+-/g)) if (!(name in found.nodes)) pending.push(name);
      }
    }
    if (pending.length) requestAnimationFrame(() => channel.port2.postMessage(0));
  }).observe(document, { childList: true, subtree: true, characterData: true });

  const frame = () => {
    found.frames++;
    channel.port2.postMessage(0);
    requestAnimationFrame(frame);
  };
  window.observer = {
    found,
    strip,
    /** The whole picture of the strip, for `places`. */
    picture() {
      const canvas = strip();
      window.before = new Uint32Array(pixels(canvas, 0, canvas.width).buffer);
      return [canvas.width, canvas.height];
    },
    /** Where the picture differs from `picture`: the rightmost column's middle, rows from the bottom, colours. */
    places(rows) {
      const canvas = strip();
      const { width, height } = canvas;
      const now = new Uint32Array(pixels(canvas, 0, width).buffer);
      const differs = (x, y) => now[y * width + x] !== window.before[y * width + x];
      let left = width, right = -1, top = height, bottom = -1;
      for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) if (differs(x, y)) {
        left = Math.min(left, x); right = Math.max(right, x); top = Math.min(top, y); bottom = Math.max(bottom, y);
      }
      if (right < 0) return null;
      const x = Math.floor((left + right) / 2);
      const each = (bottom - top + 1) / rows;
      const ys = Array.from({ length: rows }, (_, row) => Math.floor(bottom - (row + 0.5) * each));
      const data = pixels(canvas, x, 1);
      return { x, left, right, rows: ys, colours: ys.map((y) => colour(data, y * 4)) };
    },
    start(x, rows, palette) {
      watch = { x, rows, palette: new Map(palette) };
      levels = rows.map(() => -1);
      requestAnimationFrame(frame);
    },
  };
})();
