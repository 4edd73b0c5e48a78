/**
 * Thousands of connections to the real service, in each state that costs memory without completing
 * a request. The service keeps serving other clients within its memory limits, and releases the
 * connections when they close. CONNECTIONS sets their number. The goal is 10,000.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { connect, type Socket } from "node:net";
import process from "node:process";
import { test } from "node:test";
import { HEADER_BYTES_MAX } from "../../src/limits.ts";
import { allEvents, batchWith, commit, streamsPage } from "../contract/support/api.ts";
import { memoryBytes, openDescriptors } from "../../bench/support/process_stats.ts";
import { withServing } from "../support/deployment.ts";
import { skipLoudly } from "./support/skip.ts";
import { REPLAY_WHOLE_BYTES_MAX } from "../../src/api/replay_response.ts";

const CONNECTIONS_WANTED = Number(process.env.CONNECTIONS ?? 2000);
/** Number of descriptors reserved for purposes other than connections. */
const OTHER_DESCRIPTORS = 200;
/** Maximum number of concurrent connection attempts. The socket's backlog is short. */
const OPENING_MAX = 100;
const RETRY_MS = 5;

const KIB = 1024;
const MIB = 1024 * KIB;
/** Memory of a runtime that has loaded the program. */
const BASE_BYTES = 256 * MIB;
/** Approximate memory of a connection in either runtime. */
const CONNECTION_BYTES = 32 * KIB;
/** Size of a single read from a socket. */
const READ_BYTES = 64 * KIB;

interface Kind {
  title: string;
  /** Each connection first sends `begin`, and later `more`. */
  begin: string;
  more: string;
  /** Limit on the server's memory per connection, beyond that of an idle one; default: none. */
  moreBytesMax?: number;
  /** Divisor for the number of connections, above 1 if they cost the client a lot of memory. */
  oneIn?: number;
}

const GET = "GET /v1/events HTTP/1.1\r\nHost: x\r\n\r\n";
const KINDS: Kind[] = [
  { title: "idle", begin: "", more: "" },
  { title: "with a partial head", begin: "GET /v1/events HTTP/1.1\r\nHo", more: "s" },
  {
    title: "with a long unfinished head",
    begin: `GET / HTTP/1.1\r\nX: ${"x".repeat(HEADER_BYTES_MAX - 1000)}`,
    more: "x",
    moreBytesMax: HEADER_BYTES_MAX + READ_BYTES,
    oneIn: 10,
  },
  {
    title: "sending a body byte by byte",
    begin: "POST /v1/events HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{",
    more: " ",
    moreBytesMax: 64 * KIB,
  },
  {
    title: "pipelining requests without reading responses",
    begin: GET.repeat(60_000),
    more: GET,
    moreBytesMax: HEADER_BYTES_MAX + 2 * READ_BYTES + REPLAY_WHOLE_BYTES_MAX,
    oneIn: 10,
  },
];

/** Maximum number of connections that one process can open. */
function connectionsAllowed(): number {
  const limit = execFileSync("sh", ["-c", "ulimit -n"], { encoding: "utf8" }).trim();
  return limit === "unlimited" ? Infinity : Number(limit) - OTHER_DESCRIPTORS;
}

/** Opens a connection that reads nothing, and retries while the backlog is full. */
async function openOne(socketPath: string): Promise<Socket> {
  for (;;) {
    const socket = connect(socketPath);
    socket.pause();
    const error = await new Promise<Error | null>((resolve) => {
      socket.once("connect", () => resolve(null));
      socket.once("error", resolve);
    });
    if (error === null) return socket.on("error", () => {});
    if (!("code" in error) || error.code !== "EAGAIN") throw error;
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

async function openCrowd(socketPath: string, count: number, sockets: Socket[]): Promise<void> {
  while (sockets.length < count) {
    const openings = Math.min(OPENING_MAX, count - sockets.length);
    sockets.push(
      ...await Promise.all(Array.from({ length: openings }, () => openOne(socketPath))),
    );
  }
}

test("serve stays responsive and within its memory limits with thousands of connections", (context) =>
  withServing(async (deployment) => {
    if (!existsSync("/proc/self/status")) {
      return skipLoudly(context, "/proc is not available to measure a process's memory");
    }
    const connections = Math.min(CONNECTIONS_WANTED, connectionsAllowed());
    if (connections < CONNECTIONS_WANTED) {
      process.stderr.write(
        `ONLY ${connections} of ${CONNECTIONS_WANTED} connections: ulimit -n allows no more\n`,
      );
    }
    const { socketPath } = deployment;
    const pid = deployment.serving.child.pid!;
    const sockets: Socket[] = [];
    let batches = 0;
    const assertServed = async () => {
      await commit(socketPath, batchWith({ batch_id: `${batches++}` }));
      assert.equal((await allEvents(socketPath)).length, batches);
      assert.equal((await streamsPage(socketPath)).streams[0]!.event_count, batches);
    };
    try {
      await assertServed();
      const before = openDescriptors(pid)!;
      for (const { title, begin, more, moreBytesMax = 0, oneIn = 1 } of KINDS) {
        const count = Math.ceil(connections / oneIn);
        await openCrowd(socketPath, count, sockets);
        // One limit on unsent data applies to all connections together.
        const bytes = Buffer.from(begin);
        for (const socket of sockets) if (begin !== "") socket.write(bytes);
        await assertServed();
        for (const socket of sockets) if (more !== "") socket.write(more);
        await assertServed();
        assert.ok(openDescriptors(pid)! >= count, `${title}: all clients are connected`);
        const resident = memoryBytes(pid)!;
        const limit = BASE_BYTES + count * (CONNECTION_BYTES + moreBytesMax);
        context.diagnostic(`${count} ${title}: ${Math.round(resident / MIB)} MiB`);
        assert.ok(resident < limit, `${title}: ${resident} bytes, at most ${limit}`);
        for (const socket of sockets.splice(0)) socket.destroy();
        while (openDescriptors(pid)! > before + 1) await assertServed();
      }
      await deployment.stop();
    } finally {
      for (const socket of sockets) socket.destroy();
    }
  }));
