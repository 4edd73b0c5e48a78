/** Serves a log, or a handler, on a socket in a folder of its own for the time of a test. */
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createHandler, type HandlerOptions } from "../../src/api/handler.ts";
import { refusalResponse } from "../../src/api/responses.ts";
import type { HttpHandler, HttpServer } from "../../src/http/message.ts";
import { listen, type ListenOptions } from "../../src/http/server.ts";
import { Admission } from "../../src/service/admission.ts";
import { isSkippedForExecutable } from "./tested_service.ts";
import { SimulatedDisk } from "./simulated_disk.ts";
import { openTestService } from "./test_service.ts";

export interface TestServer {
  socketPath: string;
  server: HttpServer;
  /** What was reported to the operator. */
  reports: string[];
}

/** Runs `use` against a server with this handler. */
export async function withHandler(
  handler: HttpHandler,
  use: (server: TestServer) => Promise<void>,
  listenOptions: Partial<ListenOptions> = {},
): Promise<void> {
  const folder = await mkdtemp(join(await realpath(tmpdir()), "el-"));
  const socketPath = join(folder, "s.sock");
  const reports: string[] = [];
  const report = (line: string) => void reports.push(line);
  try {
    const own = { path: socketPath, handler, refusal: refusalResponse, report };
    const server = await listen({ ...own, ...listenOptions });
    try {
      await use({ socketPath, server, reports });
    } finally {
      await server.close();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Runs `use` against the HTTP API, by default over an empty log in memory. */
export async function withApi(
  options: Partial<HandlerOptions>,
  use: (server: TestServer) => Promise<void>,
): Promise<void> {
  if (isSkippedForExecutable()) return;
  const opened = options.log === undefined ? await openTestService(new SimulatedDisk()) : null;
  const reports: string[] = [];
  const handler = createHandler({
    log: opened?.service ?? options.log!,
    token: "",
    replay: { defaultLimit: 1000, maxLimit: 100_000 },
    admission: new Admission(),
    report: (line) => void reports.push(line),
    ...options,
  });
  try {
    await withHandler(handler, async (server) => {
      await use({
        ...server,
        get reports() {
          return [...reports, ...server.reports];
        },
      });
    });
  } finally {
    await opened?.service.close();
  }
}
