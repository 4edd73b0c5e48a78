/** Serves a handler on a socket in a folder of its own for the time of a test. */
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { refusalResponse } from "../../src/api/responses.ts";
import type { HttpHandler, HttpServer } from "../../src/http/message.ts";
import { listen, type ListenOptions } from "../../src/http/server.ts";

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
