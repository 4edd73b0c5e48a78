/**
 * Hostile clients, which run on a worker thread, so that they do not delay the client that is
 * measured. The thread ends when the benchmark terminates it.
 */
import type { Buffer } from "node:buffer";
import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { isMainThread, parentPort, workerData } from "node:worker_threads";
import { getRequest, postHead, postRequest } from "../support/requests.ts";

/** Authorizes requests. */
export const TOKEN = "bench-token";
/** Matches nothing, although every row group has events of this stream and of this kind. */
export const NO_MATCH = "/v1/events?stream=even&kind=odd";
/** The kind of the largest event. */
export const LARGE_KIND = "large";
/** Milliseconds until an abandoned replay is closed. */
const ABANDONED_MS = 2;
const ABANDONED = 400;
const BODY_BYTES = 32 * 1024 * 1024;
const HEAD_LINES = 16_000;
const ERRORS = 9_900;
const RETRY_MS = 5;
const PIPELINED = 4096;
const CHURN_PER_SECOND = 1000;

/** A running attack, and where. */
export interface Target {
  attack: string;
  socketPath: string;
}

const ended: (() => void)[] = [];
let isBegun = false;

/** Tells the benchmark once that the requests are prepared. */
function tellBegun(): void {
  if (!isBegun) parentPort!.postMessage("begun");
  isBegun = true;
}

/** Opens a connection that reads nothing, and retries while the backlog is full. */
async function open({ socketPath }: Target): Promise<Socket> {
  // The requests of all clients are prepared first.
  await delay(0);
  tellBegun();
  for (;;) {
    const socket = connect({ path: socketPath, allowHalfOpen: true });
    await new Promise((resolve) => socket.once("connect", resolve).once("error", resolve));
    socket.on("error", () => {});
    if (socket.readyState === "open") return socket;
    await delay(RETRY_MS);
  }
}

function get(target: string): Buffer {
  return getRequest(target, TOKEN);
}

/** Resolves when the server has closed a connection. */
function over(socket: Socket): Promise<unknown> {
  return new Promise((resolve) => socket.once("close", resolve).once("end", resolve));
}

/** Sends `bytes` repeatedly, as fast as the server accepts them, on a new connection if it ends. */
async function flood(target: Target, begin: string, bytes: Buffer | string): Promise<never> {
  for (;;) {
    const socket = await open(target);
    const end = over(socket).then(() => "over");
    socket.resume();
    socket.write(begin);
    const write = () => new Promise((resolve) => socket.write(bytes, resolve));
    while (await Promise.race([end, write()]) !== "over");
    socket.destroy();
    await delay(RETRY_MS);
  }
}

/** Sends the next request as soon as a response has ended. */
async function repeat(target: Target, next: () => string | Buffer): Promise<never> {
  for (;;) {
    const socket = await open(target);
    socket.resume();
    socket.write(next());
    await over(socket);
    socket.destroy();
    await delay(RETRY_MS);
  }
}

/** Sends a request whose response is never read. */
async function unread(target: Target, request: string | Buffer): Promise<void> {
  const socket = await open(target);
  socket.pause();
  ended.push(() => socket.destroy());
  socket.write(request);
}

async function abandon(target: Target): Promise<void> {
  const socket = await open(target);
  socket.write(get(NO_MATCH));
  await delay(ABANDONED_MS);
  socket.destroy();
}

async function churn(target: Target): Promise<never> {
  for (;; await delay(10)) {
    for (let count = 0; count < CHURN_PER_SECOND / 100; count++) {
      void open(target).then((socket) => socket.destroy());
    }
  }
}

/** The slowest bodies of the largest size. Each ends in an invalid event. */
function slowBody(form: number): string {
  const payload = [
    numbers,
    () => `[${fill((n) => (n === 0 ? "" : ",") + '"\\n"')}]`,
    () => `{"\\n":1${fill((n) => `,"m${n}":1`)}}`,
    () => `{"x":1${fill((n) => `,"${1e6 + n}":1`)}}`,
  ][form]!();
  return batchOf("slow", payload, {});
}

/** A payload that is stored in 140 MiB. */
function numbers(): string {
  return `[${fill((n) => (n === 0 ? "" : ",") + "1e20")}]`;
}

/** A batch with an event that has this payload, and `more` events. */
function batchOf(batchId: string, payload: string, ...more: object[]): string {
  const event = { stream: "s", record_key: "k", kind: "u", payload: 0 };
  const text = JSON.stringify({ batch_id: batchId, source: "hostile", events: [event, ...more] });
  return text.replace('"payload":0', () => `"payload":${payload}`);
}

/** Returns a function that returns new batches, each with the largest event alone. */
function largeBatches(client: number): () => Buffer {
  const payload = numbers();
  let number = 0;
  return () => postRequest(batchOf(`${client}-${number++}`, payload), TOKEN);
}

function fill(piece: (n: number) => string): string {
  let text = "";
  for (let n = 0; text.length < BODY_BYTES - 1000; n++) text += piece(n);
  return text;
}

/** A batch whose response lists this many faults. */
function faultyBatch(): string {
  const event = '{"stream":"A","record_key":"k","kind":"u","payload":1}';
  return `{"batch_id":"b","source":"s","events":[${new Array(ERRORS).fill(event).join(",")}]}`;
}

/** All clients send the same. */
let faulty: Buffer | undefined;

/** What each of a number of clients does. */
type Attack = [clients: number, act: (target: Target, client: number) => Promise<unknown>];

const ATTACKS: Record<string, Attack> = {
  "alone": [0, () => Promise.resolve()],
  "abandoned-400": [1, async (target) => {
    for (let count = 0; count < ABANDONED; count++) await abandon(target);
  }],
  "pipeline-16": [16, (target) => flood(target, "", pipelined())],
  "heads-8": [8, (target) => flood(target, "", longHead())],
  "chunks-8": [8, (target) => {
    const begin = postHead("Transfer-Encoding: chunked", TOKEN);
    return flood(target, begin, "1\r\n \r\n".repeat(PIPELINED));
  }],
  "no-match-64": [64, (target) => repeat(target, () => get(NO_MATCH))],
  "replays-16": [16, (target) => {
    const page = get("/v1/events?limit=100000").toString();
    return repeat(target, () => page.replace("1.1", "1.0"));
  }],
  "follows-32": [32, (target) => repeat(target, () => get(`${NO_MATCH}&follow=true`))],
  "bodies-4": [4, (target, client) => {
    const slow = postRequest(slowBody(client), TOKEN);
    return repeat(target, () => slow);
  }],
  "large-events-2": [2, (target, client) => repeat(target, largeBatches(client))],
  "stalled-follows-4000": [4000, (target) => unread(target, get("/v1/events?follow=true"))],
  "half-heads-2000": [2000, (target) => unread(target, "GET / HT")],
  "churn-1000": [1, churn],
  "unread-events-150": [
    150,
    (target) => unread(target, get(`/v1/events?kind=${LARGE_KIND}&limit=1`)),
  ],
  "unread-errors-300": [
    300,
    (target) => unread(target, faulty ??= postRequest(faultyBatch(), TOKEN)),
  ],
  "unread-streams-1500": [1500, (target) => unread(target, get("/v1/streams?limit=1000"))],
};

export const ATTACK_NAMES: string[] = Object.keys(ATTACKS);

function pipelined(): string {
  return "A / HTTP/1.1\r\n\r\n".repeat(PIPELINED);
}

function longHead(): string {
  return `GET / HTTP/1.1\r\n${"a:\r\n".repeat(HEAD_LINES)}\r\n`;
}

if (!isMainThread && workerData?.attack !== undefined) {
  parentPort!.on("message", () => {
    for (const end of ended) end();
    parentPort!.postMessage("ended");
  });
  const [clients, act] = ATTACKS[workerData.attack]!;
  await Promise.all(Array.from({ length: clients }, (_, client) => act(workerData, client)));
  tellBegun();
}
