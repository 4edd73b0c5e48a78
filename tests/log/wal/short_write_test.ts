/**
 * A system call may transfer fewer bytes than requested, and a signal may interrupt the call before
 * any byte is transferred. The log's storage continues until all bytes are transferred.
 */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import fs from "node:fs";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { fileStorage } from "../../../src/log/storage/file_storage.ts";
import { withFolder } from "../../../tools/support/program.ts";

const CALL_BYTES_MAX = 3;
const TEXT = "more bytes than one call takes";

type Call = (
  fd: number,
  bytes: Uint8Array,
  offset: number,
  length: number,
  position: number,
  done?: (error: Error | null, count: number) => void,
) => number;

/** Interrupts every other call to a function of `fs` and shortens the rest. */
function shorten(context: TestContext, name: "read" | "write" | "readSync" | "writeSync"): void {
  const calls = fs as unknown as Record<typeof name, Call>;
  const original = calls[name];
  let count = 0;
  calls[name] = (fd, bytes, offset, length, position, done) => {
    count += 1;
    if (count % 2 === 0) {
      return original(fd, bytes, offset, Math.min(length, CALL_BYTES_MAX), position, done);
    }
    const interrupted = Object.assign(new Error("EINTR: interrupted"), { code: "EINTR" });
    if (done === undefined) throw interrupted;
    done(interrupted, 0);
    return 0;
  };
  context.after(() => void (calls[name] = original));
}

for (const mode of ["pooled", "blocking"] as const) {
  const title = `fileStorage() continues after a short write, a short read and EINTR, ${mode}`;
  test(title, (t) =>
    withFolder(async (folder) => {
      shorten(t, mode === "pooled" ? "write" : "writeSync");
      shorten(t, mode === "pooled" ? "read" : "readSync");
      const file = await fileStorage(folder).open("f", "create");
      await file.write(Buffer.from(TEXT), 0, mode);
      const into = Buffer.alloc(100);
      const readBytes = await file.read(into, 0, mode);
      assert.equal(into.toString("utf8", 0, readBytes), TEXT);
      await file.close();
      assert.equal(fs.readFileSync(join(folder, "f"), "utf8"), TEXT);
    }));
}
