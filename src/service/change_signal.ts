/**
 * Tells followers about the commits that their filters match. A commit looks up its own values in
 * maps, so followers that it does not concern cost nothing. Waits end after the commit's receipts
 * are sent, a few per turn of the event loop, so that a thousand followers do not delay requests.
 */
import { clearInterval, setInterval } from "node:timers";
import { setImmediate } from "node:timers/promises";
import { LINE_END, OFFSETS } from "../event/batch_encoder.ts";
import type { PreparedBatch } from "../event/types.ts";
import { spelledText } from "../log/line/line_bytes.ts";
import { type EventFilter, lineMembers } from "../log/line/stored_line.ts";
import { serveSockets } from "../turns.ts";

/** Followers woken per turn of the event loop: about half a millisecond of work. */
export const WAKES_PER_TURN_MAX: number = 64;
/** Interval between checks whether followers have a position to report. */
const SWEEP_MS = 1000;

export interface Watcher {
  readonly filter: EventFilter;
  /** Called when a commit with a matching event becomes visible, with the frontier before it. */
  matched(before: string | null): void;
  /** Whether the watcher has a position to report. */
  isDue(): boolean;
  /** Ends the watcher's wait, if any. */
  wake(): void;
}

/** Watchers by the values of the members that their filters test. */
type Groups = Map<string, Set<Watcher>>;

export class ChangeSignal {
  /** By the members that the filters test, a bit for each in the order of `lineMembers()`. */
  readonly #groups: readonly Groups[] = Array.from({ length: 16 }, () => new Map());
  readonly #watchers = new Set<Watcher>();
  #due: Watcher[] = [];
  #timer: ReturnType<typeof setInterval> | undefined;
  /** Last event of the commits that watchers were told about. */
  frontier: string | null;

  constructor(frontier: string | null) {
    this.frontier = frontier;
  }

  get watchers(): number {
    return this.#watchers.size;
  }

  /** Tells `watcher` about later commits, until it is removed. */
  add(watcher: Watcher): void {
    this.#watchers.add(watcher);
    const { tested, key } = placeOf(watcher.filter);
    const groups = this.#groups[tested]!;
    groups.set(key, (groups.get(key) ?? new Set()).add(watcher));
    const wakeDue = () => this.#wakeLater([...this.#watchers].filter((each) => each.isDue()));
    this.#timer ??= setInterval(wakeDue, SWEEP_MS).unref();
  }

  remove(watcher: Watcher): void {
    this.#watchers.delete(watcher);
    const { tested, key } = placeOf(watcher.filter);
    const group = this.#groups[tested]!.get(key);
    group?.delete(watcher);
    if (group?.size === 0) this.#groups[tested]!.delete(key);
    if (this.#watchers.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Wakes the watchers whose filter matches an event in a commit that ends at `frontier`. */
  commit(batches: readonly PreparedBatch[], frontier: string): void {
    const before = this.frontier;
    this.frontier = frontier;
    if (this.#watchers.size === 0) return;
    const used = [...this.#groups.keys()].filter((tested) => this.#groups[tested]!.size > 0);
    const last = used.at(-1)!;
    const matching = new Set<Set<Watcher> | undefined>();
    for (const batch of batches) {
      for (const event of membersOf(batch, last)) {
        for (const tested of used) matching.add(this.#groups[tested]!.get(keyOf(tested, event)));
      }
    }
    matching.delete(undefined);
    for (const group of matching as Set<Set<Watcher>>) {
      for (const watcher of group) watcher.matched(before);
      void this.#wakeLater([...group]);
    }
  }

  fire(): void {
    void this.#wakeLater([...this.#watchers]);
  }

  async #wakeLater(watchers: readonly Watcher[]): Promise<void> {
    const isWaking = this.#due.length > 0;
    this.#due = this.#due.concat(watchers);
    if (isWaking || watchers.length === 0) return;
    await setImmediate();
    for (;;) {
      for (const watcher of this.#due.splice(0, WAKES_PER_TURN_MAX)) watcher.wake();
      if (this.#due.length === 0) return;
      await serveSockets();
    }
  }
}

/** Returns the bits of the members that a filter tests, and the key for their values. */
function placeOf({ source, stream, recordKey, kind }: EventFilter) {
  const values = [source, stream, recordKey, kind].map((value) =>
    value === undefined ? null : spelledText(value).toString("latin1")
  );
  const tested = values.reduce((bits, value, index) => bits | Number(value !== null) << index, 0);
  return { tested, key: keyOf(tested, values) };
}

/** Joins values by a character that JSON strings escape. */
function keyOf(tested: number, values: readonly (string | null)[]): string {
  return values.filter((_, index) => (tested & 1 << index) !== 0).join("\n");
}

/**
 * Yields the members of a batch's events, without most repetitions.
 * @param tested the greatest set of members, which determines up to which one they are needed.
 */
function* membersOf({ source, events }: PreparedBatch, tested: number): Generator<string[]> {
  if (tested < 1 << 1) return void (yield [source]);
  if (tested < 1 << 2) return yield* events.streams.map(({ stream }) => [source, stream]);
  for (let index = 0, start = 0; index < events.count; index++) {
    yield lineMembers(events.lines, start);
    start = events.offsets[index * OFFSETS + LINE_END]!;
  }
}
