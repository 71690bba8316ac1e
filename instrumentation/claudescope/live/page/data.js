// Questions to the server: an answer, or an error whose message says what to change.

export class Refusal extends Error {
  /** @param {string} message @param {string} fix @param {number} status 0: no answer at all @param {string} code */
  constructor(message, fix, status, code) {
    super(message);
    this.fix = fix;
    this.status = status;
    this.code = code;
  }
}

/**
 * The JSON at a path of this server. Throws Refusal (`message`, `fix`, `status`, `code`); an AbortError when aborted.
 * @param {string} path @param {URLSearchParams | null} [query] @param {AbortSignal} [signal] @returns {Promise<any>}
 */
export async function getJSON(path, query = null, signal = undefined) {
  const search = query?.toString();
  let answer;
  try {
    answer = await fetch(search ? `${path}?${search}` : path, { headers: { Accept: "application/json" }, signal });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Refusal("The server does not answer.", "Is `claudescope up` still running?", 0, "no_answer");
  }
  if (answer.ok) return answer.json();
  const said = await answer.json().catch(() => null);
  throw new Refusal(said?.error?.message ?? `The server answered ${answer.status}.`, said?.error?.fix ?? "", answer.status, said?.error?.code ?? "");
}

/**
 * One question that is asked again and again. The newest wins: an older one that is under way is aborted, and its
 * answer is never given. Nothing is asked in a hidden tab.
 */
export class Question {
  /**
   * @param {(signal: AbortSignal) => Promise<any>} ask
   * @param {(answer: any) => void} answer
   * @param {(refusal: Refusal) => void} refuse
   * @param {number} every ms between two questions of `soon`
   */
  constructor(ask, answer, refuse, every = 1000) {
    this.ask = ask;
    this.answer = answer;
    this.refuse = refuse;
    this.every = every;
    this.asked = -Infinity;
    /** @type {AbortController | null} */
    this.running = null;
    /** @type {ReturnType<typeof setTimeout> | null} */
    this.timer = null;
  }

  /** Asks at once. */
  async now() {
    this.stop();
    if (document.hidden) return;
    const running = this.running = new AbortController();
    this.asked = performance.now();
    try {
      const found = await this.ask(running.signal);
      if (this.running === running) this.answer(found);
    } catch (error) {
      if (this.running === running && error instanceof Refusal) this.refuse(error);
      else if (!running.signal.aborted) throw error;
    } finally {
      if (this.running === running) this.running = null;
    }
  }

  /** Asks when `every` has passed since it was last asked and answered; many calls are one question. */
  soon() {
    if (this.timer !== null || document.hidden) return;
    const wait = Math.max(0, this.asked + this.every - performance.now());
    this.timer = setTimeout(() => {
      this.timer = null;
      if (this.running) return this.soon();
      this.now();
    }, this.running ? this.every : wait);
  }

  /** Forgets what is under way and what is planned. */
  stop() {
    this.running?.abort();
    this.running = null;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
  }
}
