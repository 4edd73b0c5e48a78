/** Followers cost nothing after they disconnect, and little while they stall. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { memoryBytes, openDescriptors } from "../../bench/support/process_stats.ts";
import { withServing } from "../support/deployment.ts";
import { RawConnection } from "../support/raw_client.ts";
import { batchWith, commit, event } from "./support/api.ts";
import { FollowReader } from "./support/follow_reader.ts";

const MIB = 1024 * 1024;
/** Interval between checks of a process's open descriptors. */
const LOOK_MS = 5;
const FOLLOW = "GET /v1/events?follow=true HTTP/1.1\r\nHost: localhost\r\n\r\n";
const skip = existsSync("/proc/self/fd") ? false : "/proc is not available";

/** Opens a follow and disconnects after its first bytes. */
async function openAndDrop(socketPath: string): Promise<void> {
  const connection = await RawConnection.open(socketPath, FOLLOW);
  await connection.receive(1);
  connection.destroy();
}

test(
  "1,000 follows opened and dropped leak no descriptors or memory",
  { skip },
  () =>
    withServing(async ({ socketPath, serving }) => {
      const pid = serving.child.pid!;
      await commit(socketPath, batchWith({}));
      for (let n = 0; n < 200; n++) await openAndDrop(socketPath);
      const descriptorsBefore = openDescriptors(pid)!;
      const residentBefore = memoryBytes(pid)!;
      for (let n = 0; n < 1000; n += 50) {
        await Promise.all(Array.from({ length: 50 }, () => openAndDrop(socketPath)));
      }
      // Sends no requests while waiting, because each would open a descriptor.
      while (openDescriptors(pid)! > descriptorsBefore) await delay(LOOK_MS);
      const grownBytes = memoryBytes(pid)! - residentBefore;
      assert.ok(grownBytes < 64 * MIB, `${grownBytes} bytes more`);
    }),
);

test(
  "100 stalled followers cost less than 2 MiB each, and commits continue",
  { skip },
  () =>
    withServing(async ({ socketPath, serving }) => {
      const pid = serving.child.pid!;
      const events = Array.from({ length: 10 }, () => event({ payload: "x".repeat(MIB / 10) }));
      const commitMib = (batchId: string) =>
        commit(socketPath, batchWith({ batch_id: batchId, events }));
      for (let n = 0; n < 16; n++) await commitMib(`before-${n}`);
      const residentBefore = memoryBytes(pid)!;
      // Reads only when a record is requested.
      const slow = await FollowReader.open(socketPath);
      const stalled: RawConnection[] = [];
      for (let n = 0; n < 100; n++) {
        const connection = await RawConnection.open(socketPath);
        connection.pause();
        await connection.write(FOLLOW);
        stalled.push(connection);
      }
      for (let n = 0; n < 16; n++) await commitMib(`after-${n}`);
      const reading = await FollowReader.open(socketPath);
      const all = await reading.catchUp();
      assert.equal(all.length, 320);
      reading.close();
      const grownBytes = memoryBytes(pid)! - residentBefore;
      assert.ok(grownBytes < 200 * MIB, `${grownBytes} bytes more`);
      const followed = await slow.catchUp();
      followed.push(...await slow.takeLive(all.length - followed.length));
      assert.deepEqual(followed, all, "a slow follower loses nothing");
      slow.close();
      for (const connection of stalled) connection.destroy();
    }),
);
