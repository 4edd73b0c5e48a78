/** `tail` prints events as they are stored, one a line. */
import type { EventLogClient } from "../client/event_log_client.ts";
import type { FollowOptions } from "../client/follow.ts";
import type { ReplayOptions } from "../client/replay.ts";
import { idTimeMs, isEventId } from "../event/event_id.ts";
import { canonicalize } from "../event/json/canonical_json.ts";
import type { CommittedEvent } from "../event/types.ts";
import { describeError } from "../log/storage/system_error.ts";
import type { Options } from "./arguments.ts";
import type { Config } from "./config.ts";
import { operationalError, usageError } from "./exit.ts";
import { print, runAsClient } from "./service_client.ts";
import type { Terminal } from "./terminal.ts";

/** Events per page; a page of average events has a megabyte. */
const PAGE_EVENTS = 2_000;

const UNITS_MS: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};

/** The first period before the frontier in which the last events are looked for. */
const LAST_WITHIN_MS = 10;
const LAST_WITHIN_FACTOR = 4;

export async function tail(config: Config, options: Options, terminal: Terminal): Promise<void> {
  const { source, stream, "record-key": recordKey, kind } = options;
  const { last, ...position } = startOf(options);
  const limit = Math.min(config.replay.maxLimit, PAGE_EVENTS);
  await runAsClient(config, terminal, async (client, frontier) => {
    const all = { source, stream, recordKey, kind, limit, signal: terminal.stop };
    const start = last === undefined
      ? { from: { ...all, ...position }, skipped: 0 }
      : await startOfLast(client, frontier, all, last);
    let { skipped } = start;
    const printEvents = async (events: CommittedEvent[]) => {
      await print(events.slice(skipped).map(lineOf).join(""));
      skipped = Math.max(0, skipped - events.length);
    };
    if (options.follow === undefined) {
      for await (const { events } of client.replayPages(start.from)) await printEvents(events);
    } else {
      const following = { ...start.from, ...reportingInterruptions(terminal.report) };
      for await (const record of client.followRecords(following)) {
        if (record.type === "events") await printEvents(record.events);
        if (record.type !== "end") continue;
        throw operationalError(`follow ended: ${record.reason}; see the service's standard error`);
      }
    }
  });
}

/** A member whose name is a number, which JavaScript does not list in the order of RFC 8785. */
const NUMBERED_MEMBER = /"\d+":/;

/** Returns an event's line as stored: members in the order in which they are sent, canonical. */
function lineOf(event: CommittedEvent): string {
  const line = JSON.stringify(event);
  if (!NUMBERED_MEMBER.test(line)) return `${line}\n`;
  const members = Object.entries(event)
    .map(([name, value]) => `"${name}":${canonicalize(value)}`);
  return `{${members.join(",")}}\n`;
}

/** Returns callbacks that report the first of several failed attempts, and a success. */
function reportingInterruptions(report: (line: string) => void): FollowOptions {
  let isInterrupted = false;
  return {
    onReconnected() {
      isInterrupted = false;
      report("reconnected");
    },
    onReconnect({ reason }) {
      const why = reason instanceof Error ? describeError(reason) : "the service has ended it";
      if (!isInterrupted) report(`follow interrupted: ${why}; reconnecting`);
      isInterrupted = true;
    },
  };
}

/** Parses the options that say where to start. */
function startOf(options: Options) {
  const names = (["after", "since", "last"] as const).filter((name) => name in options);
  if (names.length > 1) throw usageError(`tail accepts only one of --${names.join(", --")}`);
  const { after, since, last } = options;
  if (after !== undefined && !isEventId(after)) throw usageError("--after must be an event id");
  if (last !== undefined && !/^\d{1,15}$/.test(last)) throw usageError("--last must be a count");
  return {
    after,
    since: since === undefined ? undefined : timeOf(since),
    last: last === undefined ? undefined : Number(last),
  };
}

/** Parses a time in UTC, or a period before now such as `10m`. */
function timeOf(text: string): number {
  const [, count, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  if (unit !== undefined) return Date.now() - Number(count) * UNITS_MS[unit]!;
  const [, date, time = "T00:00", zone = "Z"] =
    /^(\d{4}-\d\d-\d\d)(T[\d:.]+)?(Z|[+-]\d\d:\d\d)?$/.exec(text) ?? [];
  const unixMs = Date.parse(`${date}${time}${zone}`);
  // `Date` takes February 31 for March 3.
  const isDay = new Date(Date.parse(`${date}`) || 0).toISOString().startsWith(`${date}`);
  if (Number.isFinite(unixMs) && isDay) return unixMs;
  throw usageError("--since must be a time such as 2026-01-31T12:00:00Z, or a period such as 10m");
}

/**
 * Finds the last events that match. The service reads only forwards, so looks at longer and longer
 * periods before the frontier until one has enough. Returns where to read from, and how many events
 * to skip there.
 */
async function startOfLast(
  client: EventLogClient,
  frontier: string | null,
  all: ReplayOptions,
  last: number,
) {
  if (last === 0 || frontier === null) return { from: { ...all, after: frontier }, skipped: 0 };
  for (let withinMs = LAST_WITHIN_MS;; withinMs *= LAST_WITHIN_FACTOR) {
    const since = idTimeMs(frontier) - withinMs;
    const from = { ...all, since };
    let events = 0;
    for await (const page of client.replayPages(from)) events += page.events.length;
    if (events >= last || since <= 0) return { from, skipped: Math.max(0, events - last) };
  }
}
