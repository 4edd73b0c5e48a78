/**
 * The real service is stopped for a while (SIGSTOP, as by a debugger, a container that is paused or
 * a machine that sleeps) under writers, followers and connections in every state. It goes on where
 * it was: nothing is lost and nobody is dropped. STOP_MS says for how long.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import process from "node:process";
import { test } from "node:test";
import type { CommittedEvent, Receipt } from "../../src/event/types.ts";
import { allEvents, batchWith, event } from "../contract/support/api.ts";
import { FollowReader } from "../contract/support/follow_reader.ts";
import { type Serving, signalChild } from "../../tools/support/program.ts";
import { withServing } from "../support/deployment.ts";
import { RawConnection } from "../support/raw_client.ts";

const STOP_MS = Number(process.env.STOP_MS ?? 3000);
const WRITERS = 4;
const FOLLOWERS = 4;
/** Batches of each writer, before the stop and from it on. */
const BATCHES = 10;
const POLL_MS = 5;
const GET = "GET /v1/streams HTTP/1.1\r\nHost: x\r\n\r\n";

/** Keeps a process from running. Resolves after `ms`, or never if the system does not stop it. */
async function stopFor({ child }: Serving, ms: number): Promise<void> {
  signalChild(child, "SIGSTOP");
  try {
    await new Promise((resolve) => setTimeout(resolve, ms));
    const path = `/proc/${child.pid}/stat`;
    if (existsSync(path)) assert.match(readFileSync(path, "utf8"), /\) T /, "it is stopped");
  } finally {
    signalChild(child, "SIGCONT");
  }
}

class Writers {
  readonly receipts: Receipt[] = [];
  readonly #serving: Serving;
  readonly #done: Promise<unknown>;
  #isEnding = false;
  #batches = 0;

  constructor(serving: Serving) {
    this.#serving = serving;
    this.#done = Promise.all(Array.from({ length: WRITERS }, () => this.#write()));
    // Whoever waits for the end sees it.
    this.#done.catch(() => {});
  }

  /** Resolves when so many batches are acknowledged. */
  async written(batches: number): Promise<void> {
    while (this.receipts.length < batches) {
      await Promise.race([this.#done, new Promise((resolve) => setTimeout(resolve, POLL_MS))]);
    }
  }

  async end(): Promise<void> {
    this.#isEnding = true;
    await this.#done;
  }

  async #write(): Promise<void> {
    while (!this.#isEnding) {
      const batchId = `batch ${this.#batches++}`;
      const events = [event({ record_key: batchId, payload: "x".repeat(1000) })];
      const response = await this.#serving.fetch("/v1/events", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(batchWith({ batch_id: batchId, events })),
      });
      const body = await response.json();
      assert.equal(response.status, 200, JSON.stringify(body));
      assert.equal(body.status, "committed");
      this.receipts.push(body);
    }
  }
}

/** Reads all there is up to the event with this id. */
async function followTo(follower: FollowReader, lastEventId: string): Promise<CommittedEvent[]> {
  const events = await follower.catchUp();
  while (events.at(-1)?.event_id !== lastEventId) events.push(...await follower.takeLive(1));
  return events;
}

/** Connections that are in the middle of something, and what goes on with each. */
async function openConnections(socketPath: string): Promise<[RawConnection, string][]> {
  const body = JSON.stringify(batchWith({ batch_id: "slow" }));
  const post = `POST /v1/events HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n`;
  const begun: [before: string, after: string][] = [
    ["", GET],
    [GET.slice(0, 30), GET.slice(30)],
    [post + body.slice(0, 10), body.slice(10)],
  ];
  const connections: [RawConnection, string][] = [];
  for (const [before, after] of begun) {
    const connection = await RawConnection.open(socketPath);
    await connection.write(GET);
    assert.equal((await connection.readResponse())?.status, 200);
    await connection.write(before);
    connections.push([connection, after]);
  }
  return connections;
}

test(`serve goes on where it was when it is stopped for ${STOP_MS} ms`, () =>
  withServing(async (deployment) => {
    const { serving, socketPath } = deployment;
    const followers: FollowReader[] = [];
    try {
      while (followers.length < FOLLOWERS) followers.push(await FollowReader.open(socketPath));
      const connections = await openConnections(socketPath);
      const writers = new Writers(serving);
      await writers.written(WRITERS * BATCHES);
      const beforeStop = writers.receipts.length;
      await stopFor(serving, STOP_MS);
      await writers.written(beforeStop + WRITERS * BATCHES);
      await writers.end();

      for (const [connection, after] of connections) {
        await connection.write(after);
        const response = await connection.readResponse();
        assert.equal(response?.status, 200, response?.body);
        connection.destroy();
      }
      const events = await allEvents(socketPath);
      const written = events.filter(({ batch_id }) => batch_id !== "slow");
      assert.deepEqual(
        written.map(({ event_id }) => event_id),
        writers.receipts.map(({ first_event_id }) => first_event_id).sort(),
      );
      const lastEventId = events.at(-1)!.event_id;
      for (const follower of followers) {
        assert.deepEqual(await followTo(follower, lastEventId), events);
      }
      await deployment.stop();
      for (const follower of followers) {
        assert.equal((await follower.nextOf("end")).reason, "shutdown");
      }
    } finally {
      for (const follower of followers) follower.close();
    }
  }));
