/** How many connections a server may hold: fewer while the process has few descriptors left. */
import { closeSync, openSync } from "node:fs";

/** Descriptors left for files. The system's limit is unknown, so opening them is tried. */
const SPARE_DESCRIPTORS = 32;
/** Connections after which that is tried again, and the fewest that are admitted. */
const TRIAL_CONNECTIONS = 8;

export class ConnectionLimit {
  readonly #max: number;
  readonly #folder: string;
  readonly #closeOne: () => boolean;
  #open = 0;
  /** The number of connections when descriptors were last found to be left, or fewer since. */
  #triedAt = 0;

  /**
   * @param max the limit while descriptors are left.
   * @param folder is opened to try whether they are.
   * @param closeOne closes a connection between requests; returns false if there is none.
   */
  constructor(max: number, folder: string, closeOne: () => boolean) {
    this.#max = max;
    this.#folder = folder;
    this.#closeOne = closeOne;
  }

  /** Admits a new connection, in place of others at the limit. Returns false if it must go. */
  admit(): boolean {
    const isDue = this.#open >= this.#triedAt + TRIAL_CONNECTIONS;
    const isShort = isDue && !canOpen(this.#folder);
    if (isDue && !isShort) this.#triedAt = this.#open;
    if ((isShort || this.#open >= this.#max) && !this.#closeOne()) return false;
    // Log files need the descriptors that are left.
    for (let n = 1; isShort && n < TRIAL_CONNECTIONS && this.#closeOne(); n++);
    this.#open += 1;
    return true;
  }

  /** Must be called when an admitted connection has closed. */
  closed(): void {
    this.#open -= 1;
    this.#triedAt = Math.min(this.#triedAt, this.#open);
  }
}

/** Whether SPARE_DESCRIPTORS can be opened. */
function canOpen(path: string): boolean {
  const opened: number[] = [];
  try {
    while (opened.length < SPARE_DESCRIPTORS) opened.push(openSync(path, "r"));
  } catch (error) {
    return !["EMFILE", "ENFILE"].includes((error as { code: string }).code);
  } finally {
    for (const descriptor of opened) closeSync(descriptor);
  }
  return true;
}
