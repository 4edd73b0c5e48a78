/**
 * A log driven through steps by clients, operators and power failures. The same steps always cause
 * the same operations.
 */
import assert from "node:assert/strict";
import { SEGMENT_TEMPORARY_FILES } from "../../../src/log/storage/file_names.ts";
import type { Mutation } from "../../support/submitted.ts";
import { KnownHistory } from "../../support/known_history.ts";
import { randomItem, seededRandom } from "../../../tools/support/random.ts";
import { torn } from "../../support/simulated_crash.ts";
import { type Base, LogRun } from "./log_run.ts";

/** A step in the life of a log. All but the last three start the service if it is not running. */
export const STEPS = [
  /** Submits a batch. */
  "append",
  /** Submits two batches at once. They share a group commit. */
  "group",
  /** Submits a batch from a new source and, at the same time, the retirement of that source. */
  "retire",
  /** The process is killed and restarted, while the machine keeps running. */
  "kill",
  /** The power fails during the sync of a batch, and the service is restarted. */
  "crash",
  /** A clean shutdown. */
  "shutdown",
  /** The service shuts down, then `seal` runs. */
  "seal",
  /** Like "seal", but the segment cannot be written, so the rotated tail stays pending. */
  "rotate",
] as const;
export type Step = typeof STEPS[number];

/** A log with a segment, a pending file, and a tail that was not shut down cleanly. */
export const LOG_STEPS: readonly Step[] = [
  ...["append", "retire", "seal", "group", "rotate", "append", "append"] as const,
];

const TEXT_CHARACTERS = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789é\n"];
const SEGMENT_BOUNDS = { events: 2, bytes: 100_000 };

export const EMPTY_BASE: Base = { tree: new Map(), known: new KnownHistory() };

/** An incompressible string. */
function randomText(seed: number, length: number): string {
  const random = seededRandom(seed);
  return Array.from({ length }, () => randomItem(random, TEXT_CHARACTERS)).join("");
}

/** The durable state after these steps. */
export async function baseOf(steps: readonly Step[]): Promise<Base> {
  const session = new CrashSession();
  for (const step of steps) await session.run(step);
  return session.base();
}

export class CrashSession extends LogRun {
  constructor(base: Base = EMPTY_BASE) {
    super(seededRandom(base.known.mutations.length + 1), base);
  }

  async run(step: Step): Promise<void> {
    switch (step) {
      case "append":
        return await this.#submit([this.#batch("shop", 2)]);
      case "group":
        return await this.#submit([this.#batch("shop", 1), this.#batch("crm", 2, 1)], {
          isGroup: true,
        });
      case "retire": {
        const source = `old-${this.known.mutations.length}`;
        return await this.#submit([this.#batch(source, 1), { kind: "retire", source }]);
      }
      case "kill":
        this.service = null;
        return void await this.serve();
      case "crash":
        return await this.#crash();
      case "shutdown":
        return await this.end("closed");
      case "seal":
        return await this.seal(SEGMENT_BOUNDS);
      case "rotate":
        if (this.service !== null) await this.end("closed");
        this.machine.arm(({ kind, path }) =>
          kind === "open" && path === SEGMENT_TEMPORARY_FILES[0]
            ? { name: "EIO", fault: { errno: "EIO" } }
            : null
        );
        await this.seal(SEGMENT_BOUNDS);
        return this.machine.endProcess();
    }
  }

  /** A batch with a unique id whose events fill several sectors. */
  #batch(source: string, events: number, before = 0): Mutation {
    const number = this.known.mutations.length + before;
    const text = randomText(number, 500);
    const eventOf = (place: number) => ({
      stream: `s-${place}`,
      record_key: `${number}/${place}`,
      kind: "upserted",
      payload: { number, place, text: place === 0 ? text : "" },
    });
    const submitted = Array.from({ length: events }, (_, place) => eventOf(place));
    return { kind: "append", batch: { source, batch_id: `b-${number}`, events: submitted } };
  }

  async #submit(mutations: readonly Mutation[], options = {}): Promise<void> {
    if (this.service === null) await this.serve();
    for (const { status, body } of await this.submit(mutations, options)) {
      assert.equal(status, 200, JSON.stringify(body));
    }
  }

  async #crash(): Promise<void> {
    if (this.service === null) await this.serve();
    this.machine.cutPower(({ kind }) => kind === "sync" ? torn("every other sector") : null);
    const [outcome] = await this.submit([this.#batch("shop", 2)]);
    assert.equal(outcome!.body.error, "writer_poisoned");
    this.machine.restorePower();
    await this.serve();
  }
}
