/** What the runtimes do by themselves does not show: both answer the same requests alike. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { join } from "node:path";
import { test } from "node:test";
import { init } from "../../src/commands/init.ts";
import { startServe, withFolder } from "../../tools/support/program.ts";
import { RawConnection } from "../support/raw_client.ts";
import {
  absenceOf,
  executableOf,
  type RuntimeName,
  THIS_RUNTIME,
} from "../../tools/support/runtimes.ts";
import { PARITY_REQUESTS, type ParityRequest } from "./support/parity_requests.ts";

const OTHER_RUNTIME: RuntimeName = THIS_RUNTIME === "deno" ? "node" : "deno";
const skip = executableOf(OTHER_RUNTIME) === null ? absenceOf(OTHER_RUNTIME) : false;

interface Answer {
  title: string;
  status: number | undefined;
  headers: Record<string, string>;
  body: string;
}

/** Gives event ids a number each, and makes times and what follows from ids alike. */
class Mask {
  readonly eventIds: string[] = [];

  apply(text: string): string {
    return text
      .replace(/"event_hash":"[0-9a-f]{64}"/g, '"event_hash":"HASH"')
      .replace(/"observed_at":"[^"]+"/g, '"observed_at":"TIME"')
      .replace(/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g, (id) => {
        if (!this.eventIds.includes(id)) this.eventIds.push(id);
        return `id-${this.eventIds.indexOf(id)}`;
      });
  }
}

async function answerTo(
  socketPath: string,
  { title, bytes }: ParityRequest,
  mask: Mask,
): Promise<Answer> {
  const text = bytes(mask.eventIds);
  const connection = await RawConnection.open(socketPath);
  await connection.write(Buffer.from(text, text.startsWith("\x16") ? "latin1" : "utf8"));
  const response = await connection.readResponse(text.startsWith("HEAD ") ? "HEAD" : "GET");
  connection.destroy();
  const { date: _date, ...headers } = response?.headers ?? {};
  return { title, status: response?.status, headers, body: mask.apply(response?.body ?? "") };
}

/** The answers of a fresh `serve`. */
async function answersOf(runtime: RuntimeName): Promise<Answer[]> {
  const answers: Answer[] = [];
  await withFolder(async (dir) => {
    await init(dir, () => {});
    const serving = await startServe(dir, { runtime });
    const mask = new Mask();
    for (const request of PARITY_REQUESTS) {
      answers.push(await answerTo(join(dir, "data", "ground.sock"), request, mask));
    }
    assert.equal((await serving.stop()).code, 0);
  });
  return answers;
}

test(
  "Deno and Node answer every request with the same status, headers and bytes",
  { skip },
  async () => {
    const [own, other] = await Promise.all([answersOf(THIS_RUNTIME), answersOf(OTHER_RUNTIME)]);
    for (const [n, answer] of own.entries()) assert.deepEqual(answer, other[n]);
    assert.equal(own.length, PARITY_REQUESTS.length);
  },
);
