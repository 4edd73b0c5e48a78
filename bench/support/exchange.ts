/** A single request and response, timed and checked. */
import type { Buffer } from "node:buffer";
import { RawClient } from "./raw_client.ts";
import { pageRequest } from "./requests.ts";
import { pagePosition } from "./workloads.ts";

export interface Question {
  request: Buffer;
  /** String that the end of a correct response contains. */
  expected: string;
  /** Status of a correct response; default 200. */
  status?: number;
}

/** @throws {Error} if the response is not the expected one. */
export async function ask(client: RawClient, question: Question) {
  const { request, expected, status = 200 } = question;
  const startMs = performance.now();
  const response = await client.exchange(request);
  const tookMs = performance.now() - startMs;
  if (response.status !== status || !response.bodyEnd.includes(expected)) {
    throw new Error(`status ${response.status}: ${response.bodyEnd}`);
  }
  return { response, tookMs };
}

/** Returns the last event of a log that is not empty. */
export async function frontier(socketPath: string): Promise<string> {
  const client = await RawClient.connect(socketPath);
  try {
    return pagePosition((await client.exchange(pageRequest(null, 1))).bodyEnd).snapshotThrough;
  } finally {
    client.close();
  }
}
