/** Commands that must not try forever. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ConnectionError } from "../../mod.ts";
import { runSessions } from "../sessions.ts";

const LIMITED = { stop: new AbortController().signal, report: () => {}, idleMsMax: 20 };

test("runSessions() gives up without progress, whether sessions fail or hang", async () => {
  const down = () => Promise.reject(new Error("no server"));
  await assert.rejects(runSessions(down, LIMITED), /gave up after 0\.02 s .*: no server$/);
  const hung = () => new Promise<void>(() => {});
  await assert.rejects(runSessions(hung, LIMITED), /gave up .*: the server did not respond$/);
});

test("runSessions() goes on while there is progress", async () => {
  const idleMsMax = 2000;
  let left = 5;
  await runSessions(async (onProgress) => {
    while (left-- > 0) {
      await new Promise((resolve) => setTimeout(resolve, idleMsMax / 4));
      onProgress();
    }
  }, { ...LIMITED, idleMsMax });
});

for (const code of ["EACCES", "EINVAL", "ENAMETOOLONG", "ENOTDIR", "ENOTSOCK"]) {
  test(`runSessions() does not repeat a session that cannot connect because of ${code}`, async () => {
    const cause = Object.assign(new Error(code), { code });
    const failure = new ConnectionError("no connection", { cause });
    const refused = () => Promise.reject(failure);
    await assert.rejects(runSessions(refused, { ...LIMITED, report: assert.fail }), failure);
  });
}
