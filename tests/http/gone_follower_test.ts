/**
 * The bug: if a client had sent more after a request for an endless response than the service reads
 * ahead, its disconnect was never noticed, and the response continued forever.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { FOLLOW_HEAD } from "../../src/api/follow_response.ts";
import type { HttpHandler } from "../../src/http/message.ts";
import { HEADER_BYTES_MAX } from "../../src/limits.ts";
import { Gate } from "../support/gate.ts";
import { RawConnection } from "../support/raw_client.ts";
import { letServerWork, withHandler } from "../support/test_server.ts";

const GET = "GET / HTTP/1.1\r\nHost: a\r\n";
const SENT: Record<string, string> = {
  "nothing more": `${GET}\r\n`,
  "further requests": `${GET}\r\n`.repeat(4 * HEADER_BYTES_MAX / GET.length),
  "a part of a body": `${GET}Content-Length: 1000000\r\n\r\n${"x".repeat(4 * HEADER_BYTES_MAX)}`,
  "a part of a body in chunks": `${GET}Transfer-Encoding: chunked\r\n\r\n5\r\nab`,
  "a body in broken chunks": `${GET}Transfer-Encoding: chunked\r\n\r\nzz\r\n`,
};

for (const [title, bytes] of Object.entries(SENT)) {
  for (const end of ["destroy", "endInput"] as const) {
    test(`an endless response ends with its client that sent ${title} (${end})`, () => {
      const begun = new Gate();
      let isOver = false;
      const handler: HttpHandler = () => {
        const end = Promise.withResolvers<IteratorReturnResult<undefined>>();
        const pieces = {
          next() {
            begun.open();
            return end.promise;
          },
          return() {
            isOver = true;
            end.resolve({ done: true, value: undefined });
            return end.promise;
          },
        };
        const body = { [Symbol.asyncIterator]: () => pieces };
        return Promise.resolve({ ...FOLLOW_HEAD, body, isEndless: true });
      };
      return withHandler(handler, async ({ socketPath }) => {
        const connection = await RawConnection.open(socketPath);
        void connection.write(bytes);
        await begun.opened;
        connection[end]();
        for (let n = 0; n < 200 && !isOver; n++) await letServerWork(socketPath, 1);
        connection.destroy();
        assert.ok(isOver);
      });
    });
  }
}
