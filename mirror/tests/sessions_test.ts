/** Commands that must not try forever. */
import assert from "node:assert/strict";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { ConnectionError } from "../../mod.ts";
import { freePort } from "../../tools/support/free_port.ts";
import { preloading, untilPrinted, withFolder } from "../../tools/support/program.ts";
import { runSessions } from "../sessions.ts";
import { end, startMirror } from "./support/mirrored.ts";

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
  test(`runSessions() does not repeat a session that fails with ${code}`, async () => {
    const cause = Object.assign(new Error(code), { code });
    const failure = new ConnectionError("no connection", { cause });
    const refused = () => Promise.reject(failure);
    await assert.rejects(runSessions(refused, { ...LIMITED, report: assert.fail }), failure);
  });
}

/** A clock that runs 100 times as fast. */
const FAST_CLOCK = preloading(
  "const now = performance.now.bind(performance); performance.now = () => 100 * now();",
);
/** Without a limit, the pauses before so many attempts take more than a minute on that clock. */
const ATTEMPTS = 7;
const TIMEOUT_MS = 60_000;
const skip = process.env.MIRROR_TEST_EXECUTABLE !== undefined && "an executable preloads nothing";

for (const command of ["push", "standby"]) {
  test(
    `${command} --once gives up after 60 s without a server, but not without --once`,
    { skip },
    () =>
      withFolder(async (folder) => {
        const place = join(folder, "place");
        const url = `nats://127.0.0.1:${await freePort()}`;
        const args = [
          command,
          ...command === "push" ? ["--socket", place] : [place],
          "--nats",
          url,
        ];
        const start = (more: string[]) =>
          startMirror([...args, ...more], undefined, TIMEOUT_MS, FAST_CLOCK);
        const lasting = start([]);
        await untilPrinted(
          lasting,
          ({ stderr }) => stderr.split("; reconnecting").length > ATTEMPTS,
        );
        assert.equal(await end(lasting, "SIGTERM"), 0);
        const { code, stderr } = await start(["--once"]).exited;
        assert.equal(code, 1);
        assert.match(
          stderr,
          /^gave up after 60 s without progress: nats:\S+: connection refused$/m,
        );
      }),
  );
}
