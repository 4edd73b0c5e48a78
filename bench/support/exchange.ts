/** A single request and response, timed and checked. */
import type { Buffer } from "node:buffer";
import { RawClient } from "./raw_client.ts";
import { pageRequest } from "./requests.ts";
import type { RawResponse } from "./response_parser.ts";
import { pagePosition } from "./workloads.ts";
import { median } from "../../tools/support/median.ts";

export interface Question {
  request: Buffer;
  /** String that the end of a correct response contains. */
  expected: string;
  /** Status of a correct response; default 200. */
  status?: number;
}

export interface Answer {
  response: RawResponse;
  tookMs: number;
}

/** @throws {Error} if the response is not the expected one. */
export async function ask(client: RawClient, question: Question): Promise<Answer> {
  const { request, expected, status = 200 } = question;
  const startMs = performance.now();
  const response = await client.exchange(request);
  const tookMs = performance.now() - startMs;
  if (response.status !== status || !response.bodyEnd.includes(expected)) {
    throw new Error(`status ${response.status}: ${response.bodyEnd}`);
  }
  return { response, tookMs };
}

/** Latencies for requests of one kind. */
export interface AnswerTimes {
  firstMs: number;
  /** Median of all but the first. */
  p50Ms: number;
  /** Maximum of all but the first. */
  slowestMs: number;
}

/** Summarizes at least two latencies, in the order of the requests. */
export function answerTimes([firstMs, ...laterMs]: number[]): AnswerTimes {
  return { firstMs: firstMs!, p50Ms: median(laterMs), slowestMs: Math.max(...laterMs) };
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
