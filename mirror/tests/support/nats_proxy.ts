/** A TCP proxy that drops or changes what a NATS server sends, on connections that stay open. */
import { Buffer } from "node:buffer";
import { once } from "node:events";
import { createConnection, createServer, type Socket } from "node:net";
import type { NatsServer } from "./nats_server.ts";

const HOST = "127.0.0.1";
const LINE_END = "\r\n";
/** Protocol messages that are followed by a payload, whose size is their last word. */
const WITH_PAYLOAD = /^H?MSG /;

/**
 * Receives a protocol message from the server, including its payload, in Latin-1.
 * @returns what the client receives in its place; an empty string drops it.
 */
export type Change = (message: string) => string;

/**
 * Runs `use` with the URL of a proxy for a server.
 * @param changeOf Returns the change for a connection. Connections are counted from 0.
 */
export async function withProxy(
  { url }: NatsServer,
  changeOf: (connection: number) => Change,
  use: (url: string) => Promise<void>,
): Promise<void> {
  const sockets: Socket[] = [];
  let connections = 0;
  const proxy = createServer((client) => {
    const change = changeOf(connections++);
    const server = createConnection(Number(new URL(url).port), HOST);
    let rest = Buffer.alloc(0);
    server.on("data", (data) => {
      rest = Buffer.concat([rest, data as Uint8Array]);
      for (let size = messageBytes(rest); size !== null; size = messageBytes(rest)) {
        client.write(change(rest.toString("latin1", 0, size)), "latin1");
        rest = rest.subarray(size);
      }
    });
    client.pipe(server);
    for (const [socket, other] of [[client, server], [server, client]] as const) {
      socket.on("error", () => {}).on("close", () => other.destroy());
      sockets.push(socket);
    }
  });
  proxy.listen(0, HOST);
  await once(proxy, "listening");
  const { port } = proxy.address() as { port: number };
  try {
    await use(`nats://${HOST}:${port}`);
  } finally {
    for (const socket of sockets) socket.destroy();
    proxy.close();
  }
}

/** Returns the size of the first protocol message, or null if it is incomplete. */
function messageBytes(bytes: Buffer): number | null {
  const lineBytes = bytes.indexOf(LINE_END) + LINE_END.length;
  if (lineBytes < LINE_END.length) return null;
  const line = bytes.toString("latin1", 0, lineBytes - LINE_END.length);
  const size = WITH_PAYLOAD.test(line)
    ? lineBytes + Number(line.split(" ").at(-1)) + LINE_END.length
    : lineBytes;
  return size <= bytes.length ? size : null;
}
