/**
 * Tells followers about the commits that their filters match. Followers are grouped by filter, and
 * a commit looks up its own values in maps, so its cost does not depend on the number of followers
 * that it does not concern. Their position is the frontier of this signal, without any read.
 *
 * Waits end after the commit's receipts are sent, a few per turn of the event loop, so that a
 * thousand followers do not delay requests.
 */
import { clearInterval, setImmediate, setInterval } from "node:timers";
import { LINE_END, OFFSETS } from "../event/event_stamping.ts";
import type { PreparedBatch } from "../event/types.ts";
import { spelledText } from "../log/line/line_bytes.ts";
import { type EventFilter, lineMembers } from "../log/line/stored_line.ts";

/** Followers woken per turn of the event loop: about half a millisecond of work. */
export const WAKES_PER_TURN_MAX: number = 64;

/** Interval between checks whether followers have a position to report. */
const SWEEP_MS = 1000;

/** A follower. */
export interface Watcher {
  readonly filter: EventFilter;
  /**
   * Called in the turn in which a commit with a matching event becomes visible.
   * @param before the frontier before the commit.
   * @returns whether the watcher waits.
   */
  matched(before: string | null): boolean;
  /** Whether the watcher waits and has a position to report. */
  isDue(nowMs: number): boolean;
  /** Ends the wait, if any. */
  wake(): void;
}

/** The watchers with the same filter. */
interface Group {
  readonly watchers: Set<Watcher>;
  /** Number of the last commit that matched. */
  commit: number;
}

/** The groups whose filters have the same members. */
interface Shape {
  /** Indexes in an event's members, ascending. */
  readonly members: readonly number[];
  /** By the values of these members. */
  readonly groups: Map<string, Group>;
}

/** Indexes in an event's members; see `lineMembers()`. */
const STREAM = 1;
const RECORD_KEY = 2;

export class ChangeSignal {
  /** At most one for each combination of members. */
  readonly #shapes = new Map<string, Shape>();
  #due: Watcher[] = [];
  #frontier: string | null;
  #commits = 0;
  #timer: ReturnType<typeof setInterval> | undefined;

  /** @param frontier the frontier before the first call of `commit()`. */
  constructor(frontier: string | null) {
    this.#frontier = frontier;
  }

  /** Last event of the commits that watchers have been told about. */
  get frontier(): string | null {
    return this.#frontier;
  }

  /** Tells `watcher` about later commits, until it is removed. */
  add(watcher: Watcher): void {
    const { members, key } = placeOf(watcher.filter);
    const shape = this.#shapes.get(`${members}`) ?? { members, groups: new Map() };
    this.#shapes.set(`${members}`, shape);
    const group = shape.groups.get(key) ?? { watchers: new Set(), commit: 0 };
    shape.groups.set(key, group);
    group.watchers.add(watcher);
    this.#timer ??= setInterval(() => this.sweep(), SWEEP_MS).unref();
  }

  remove(watcher: Watcher): void {
    const { members, key } = placeOf(watcher.filter);
    const shape = this.#shapes.get(`${members}`);
    const group = shape?.groups.get(key);
    group?.watchers.delete(watcher);
    if (group?.watchers.size === 0) shape?.groups.delete(key);
    if (shape?.groups.size === 0) this.#shapes.delete(`${members}`);
    if (this.#shapes.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /**
   * Tells the watchers whose filter matches an event in a commit.
   * @param frontier the last event in the commit.
   */
  commit(batches: readonly PreparedBatch[], frontier: string): void {
    const before = this.#frontier;
    this.#frontier = frontier;
    this.#commits += 1;
    const shapes = [...this.#shapes.values()];
    if (shapes.length === 0) return;
    const deepest = Math.max(...shapes.map(({ members }) => members.at(-1) ?? 0));
    for (const batch of batches) {
      for (const event of membersOf(batch, deepest)) {
        for (const { members, groups } of shapes) {
          const group = groups.get(keyOf(members, event));
          if (group === undefined || group.commit === this.#commits) continue;
          group.commit = this.#commits;
          this.#wakeLater([...group.watchers].filter((watcher) => watcher.matched(before)));
        }
      }
    }
  }

  /** Wakes all watchers. */
  fire(): void {
    this.#wakeLater(this.#watchers());
  }

  /** Wakes the watchers that have a position to report. */
  sweep(): void {
    const nowMs = performance.now();
    this.#wakeLater(this.#watchers().filter((watcher) => watcher.isDue(nowMs)));
  }

  #watchers(): Watcher[] {
    const groups = [...this.#shapes.values()].flatMap((shape) => [...shape.groups.values()]);
    return groups.flatMap(({ watchers }) => [...watchers]);
  }

  #wakeLater(watchers: readonly Watcher[]): void {
    if (watchers.length === 0) return;
    if (this.#due.length === 0) setImmediate(() => this.#wakeSome());
    this.#due = this.#due.concat(watchers);
  }

  #wakeSome(): void {
    for (const watcher of this.#due.slice(0, WAKES_PER_TURN_MAX)) watcher.wake();
    this.#due = this.#due.slice(WAKES_PER_TURN_MAX);
    if (this.#due.length > 0) setImmediate(() => this.#wakeSome());
  }
}

/** Returns the members that a filter tests, and the key for their values. */
function placeOf({ source, stream, recordKey, kind }: EventFilter) {
  const values = [source, stream, recordKey, kind].map((value) =>
    value === undefined ? undefined : spelledText(value).toString("latin1")
  );
  const members = [...values.keys()].filter((member) => values[member] !== undefined);
  return { members, key: keyOf(members, values) };
}

/** Joins values by a character that JSON strings escape. */
function keyOf(members: readonly number[], values: readonly (string | undefined)[]): string {
  if (members.length === 1) return values[members[0]!]!;
  return members.map((member) => values[member]).join("\n");
}

/** Yields the distinct values of an event's members up to `deepest`, and perhaps repetitions. */
function* membersOf({ source, events }: PreparedBatch, deepest: number) {
  if (deepest < STREAM) {
    yield [source];
  } else if (deepest < RECORD_KEY) {
    for (const { stream } of events.streams) yield [source, stream];
  } else {
    for (let index = 0, start = 0; index < events.count; index++) {
      yield lineMembers(events.lines, start);
      start = events.offsets[index * OFFSETS + LINE_END]!;
    }
  }
}
