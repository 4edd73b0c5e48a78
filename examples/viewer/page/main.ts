/** Entry point of the page: loads the current state, then follows the log. */
import type { CommittedEvent } from "../../../event.ts";
import { lastEvents } from "../../support/last_events.ts";
import { check } from "./check.ts";
import { byId } from "./elements.ts";
import { History } from "./history.ts";
import { LiveList, ROWS_MAX } from "./live_list.ts";
import { type Filter, follow, readSince, readStreams } from "./log_reader.ts";
import { Minutes } from "./minutes.ts";
import { Streams } from "./streams.ts";

const RETRY_MS = 1000;

const records = new History();
const list = new LiveList((event) => records.show(event));
const minutes = new Minutes();
const streams = new Streams();
/** Id of the last event included in the initial stream counts. */
let countedThrough = "";
/** Whether the log has more streams than the page lists. */
let isPart = false;
let seen = 0;
let faults = 0;

const LIVE = "Live";

const parameters = new URLSearchParams(location.search);
const filter: Filter = {
  source: parameters.get("source") || null,
  stream: parameters.get("stream") || null,
};

function showConnection(text: string): void {
  const connection = byId("connection");
  connection.classList.toggle("lost", text !== LIVE);
  if (connection.textContent !== text) connection.textContent = text;
}

async function takeIn(events: CommittedEvent[]): Promise<void> {
  const checked = await Promise.all(events.map(check));
  list.add(checked);
  for (const { event, fault } of checked) {
    if (fault !== null) {
      faults++;
      byId("alarm").textContent = `Event ${event.event_id} was altered: ${fault}`;
    }
    minutes.add(event.event_id);
    if (event.event_id > countedThrough) streams.add(event);
  }
  seen += events.length;
  const verdict = faults === 0 ? "all verified" : `${faults.toLocaleString()} altered`;
  const total = `${isPart ? "more than " : ""}${streams.eventCount.toLocaleString()}`;
  byId("totals").textContent = `${seen.toLocaleString()} of ${total} events seen, ${verdict}`;
}

/** Loads stream counts and finds the last events. @returns the position to follow from. */
async function readStanding(): Promise<string | null> {
  const page = await readStreams({ source: filter.source, limit: 1000 });
  const frontier = page.snapshot_through_event_id;
  streams.clear();
  isPart = page.next_after !== null;
  page.streams.filter(({ stream }) => filter.stream === null || stream === filter.stream)
    .forEach((summary) => streams.set(summary));
  if (frontier === null) return null;
  countedThrough = frontier;
  const since = (unixMs: number) => readSince(unixMs, filter);
  const last = await lastEvents(since, frontier, ROWS_MAX + 1);
  return last.length > ROWS_MAX ? last[0]!.event_id : null;
}

/** Retries `work` until it succeeds. */
async function retried<T>(work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      showConnection(`${(error as Error).message}; retrying`);
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

byId("lookup").addEventListener("submit", (event) => {
  event.preventDefault();
  const form = new FormData(event.target as HTMLFormElement);
  const valueOf = (name: string) => String(form.get(name));
  const [source, stream] = [valueOf("source"), valueOf("stream")];
  records.show({ source, stream, record_key: valueOf("record_key") });
});

for (const [name, value] of Object.entries(filter)) {
  byId<HTMLInputElement>(`filter-${name}`).value = value ?? "";
}
byId("filter").addEventListener("submit", (event) => {
  event.preventDefault();
  const form = new FormData(event.target as HTMLFormElement);
  const given = [...form].filter(([, value]) => value !== "").map(([name, value]) =>
    [name, String(value)] as [string, string]
  );
  location.search = String(new URLSearchParams(given));
});

const start = await retried(readStanding);
retried(() => minutes.load(filter));
await follow(start, filter, {
  onEvents: takeIn,
  onConnected: () => showConnection(LIVE),
  onLost: (reason, pauseMs) =>
    showConnection(`Not connected: ${reason}; retrying in ${pauseMs / 1000} s`),
  // The counts and rows shown no longer match the log.
  onRestored: () => location.reload(),
});
