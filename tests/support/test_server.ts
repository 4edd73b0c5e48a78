/** Serves a handler on a socket in a temporary directory during a test. */
import { Buffer } from "node:buffer";
import { join } from "node:path";
import { refusalResponse } from "../../src/api/responses.ts";
import type { HttpHandler, HttpRequest } from "../../src/http/message.ts";
import { listen, type ListenOptions } from "../../src/http/server.ts";
import { withFolder } from "../../tools/support/program.ts";
import { exchange } from "./raw_client.ts";

export interface TestServer {
  socketPath: string;
  server: Awaited<ReturnType<typeof listen>>;
  /** Lines reported to the operator. */
  reports: string[];
}

/** Runs `use` against a server with this handler. */
export function withHandler(
  handler: HttpHandler,
  use: (server: TestServer) => Promise<void>,
  listenOptions: Partial<ListenOptions> = {},
): Promise<void> {
  return withFolder(async (folder) => {
    const socketPath = join(folder, "s.sock");
    const reports: string[] = [];
    const report = (line: string) => void reports.push(line);
    const own = { path: socketPath, handler, refusal: refusalResponse, report };
    const server = await listen({ ...own, ...listenOptions });
    try {
      await use({ socketPath, server, reports });
    } finally {
      await server.close();
    }
  });
}

/** Reads the entire body of a request. */
export async function bodyOf(request: HttpRequest): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for (let piece = await request.read(); piece !== null; piece = await request.read()) {
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/** Gives the server time to process its input. Each exchange takes several event loop turns. */
export async function letServerWork(socketPath: string, exchanges: number): Promise<void> {
  for (let n = 0; n < exchanges; n++) {
    await exchange(socketPath, "no request\r\n\r\n");
  }
}
