/** Entry point of the page: loads the current state, then follows the log. */
import type { CommittedEvent } from "../../../event.ts";
import { lastEvents } from "../../support/last_events.ts";
import { check } from "./check.ts";
import { byId } from "./elements.ts";
import { History } from "./history.ts";
import { LiveList, ROWS_MAX } from "./live_list.ts";
import { follow, readSince, readStreams } from "./log_reader.ts";
import { Minutes } from "./minutes.ts";
import { Streams } from "./streams.ts";

const RETRY_MS = 1000;

const records = new History();
const list = new LiveList((event) => records.show(event));
const minutes = new Minutes();
const streams = new Streams();
/** Id of the last event included in the initial stream counts. */
let countedThrough = "";
let seen = 0;
let faults = 0;

const LIVE = "Live";

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
  byId("totals").textContent = `${seen.toLocaleString()} events seen, ${verdict}`;
}

/** Loads stream counts and finds the last events. @returns the position to follow from. */
async function readStanding(): Promise<string | null> {
  const page = await readStreams({ limit: 1000 });
  const frontier = page.snapshot_through_event_id;
  streams.clear();
  page.streams.forEach((summary) => streams.set(summary));
  if (frontier === null) return null;
  countedThrough = frontier;
  const last = await lastEvents(readSince, frontier, ROWS_MAX + 1);
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

const start = await retried(readStanding);
retried(() => minutes.load());
await follow(start, {
  onEvents: takeIn,
  onConnected: () => showConnection(LIVE),
  onLost: (reason, pauseMs) =>
    showConnection(`Not connected: ${reason}; retrying in ${pauseMs / 1000} s`),
  // The counts and rows shown no longer match the log.
  onRestored: () => location.reload(),
});
