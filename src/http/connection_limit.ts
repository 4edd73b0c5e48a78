/** How many connections a server may hold: fewer when the process runs out of descriptors. */
import { closeSync, openSync } from "node:fs";

/** Descriptors left for files. The system's limit is unknown, so opening them is tried. */
const SPARE_DESCRIPTORS = 32;
/** The limit is not lowered below this. */
const CONNECTIONS_MIN = 8;

export class ConnectionLimit {
  #max: number;
  readonly #folder: string;
  readonly #closeOne: () => boolean;
  #open = 0;
  /** The number of connections when descriptors were last found to be left. */
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

  /** Admits a new connection, in place of another at the limit. Returns false if it must go. */
  admit(): boolean {
    if (this.#open >= this.#max && !this.#closeOne()) return false;
    this.#open += 1;
    if (this.#open < this.#triedAt + SPARE_DESCRIPTORS / 2) return true;
    this.#triedAt = this.#open;
    if (canOpen(this.#folder)) return true;
    // Log files need the descriptors that are left.
    this.#triedAt = 0;
    this.#max = Math.max(CONNECTIONS_MIN, this.#open - SPARE_DESCRIPTORS / 2);
    for (let open = this.#open; open > this.#max && this.#closeOne(); open--);
    return true;
  }

  /** Must be called when an admitted connection has closed. */
  closed(): void {
    this.#open -= 1;
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
