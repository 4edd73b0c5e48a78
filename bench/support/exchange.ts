/** One request and its answer, timed and checked: for questions that are asked one by one. */
import type { Buffer } from "node:buffer";
import type { RawClient } from "./raw_client.ts";
import type { RawResponse } from "./response_parser.ts";

export interface Question {
  request: Buffer;
  /** Text that the end of the right answer holds. */
  expected: string;
  /** Status of the right answer; 200 if absent. */
  status?: number;
}

export interface Answer {
  response: RawResponse;
  tookMs: number;
}

/** @throws {Error} The answer is not the expected one. */
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

/** What questions of one kind took. */
export interface AnswerTimes {
  firstMs: number;
  /** Of all but the first. */
  p50Ms: number;
  /** Of all but the first. */
  slowestMs: number;
}

/** Sums up at least two times, in the order in which the questions were asked. */
export function answerTimes([firstMs, ...laterMs]: number[]): AnswerTimes {
  laterMs.sort((a, b) => a - b);
  return {
    firstMs: firstMs!,
    p50Ms: laterMs[laterMs.length >> 1]!,
    slowestMs: laterMs.at(-1)!,
  };
}
