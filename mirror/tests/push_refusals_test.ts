/** Conditions under which `push` exits with status 1 and prints a remedy. */
import assert from "node:assert/strict";
import { chmod, cp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { jetstreamManager } from "@nats-io/jetstream";
import {
  appendPayloads,
  end,
  type Mirrored,
  pushAll,
  startMirror,
  startPush,
  testWithNats,
} from "./support/mirrored.ts";
import type { NatsServer } from "./support/nats_server.ts";
import { lastSequence, STREAM } from "./support/nats_stream.ts";
import { untilPrinted, untilReported } from "../../tools/support/program.ts";
import { withDeployment, withServing } from "../../tests/support/deployment.ts";
import { UNPRIVILEGED, whyPrivileged } from "../../tests/support/unprivileged.ts";

/** Runs a pusher that is expected to fail. @returns its standard error. */
async function refusal(mirrored: Mirrored, url?: string): Promise<string> {
  const { code, stderr } = await startPush(mirrored, url).exited;
  assert.equal(code, 1, stderr);
  return stderr;
}

async function purge(nats: NatsServer): Promise<void> {
  const { streams } = await jetstreamManager(await nats.connect());
  await streams.purge(STREAM);
}

testWithNats("push refuses a stream that holds a different log", async (mirrored) => {
  await appendPayloads(mirrored, "b1", [1, 2]);
  await pushAll(mirrored);
  await withServing(async (served) => {
    const other = { ...mirrored, served };
    await appendPayloads(other, "b1", [1, 2, 3]);
    assert.match(await refusal(other), /^event \S+ \(message 2, .*\) is not in this log/);
  });
  assert.equal(await lastSequence(mirrored.nats), 2);
});

testWithNats("push reports where the log diverged from the stream", async (mirrored) => {
  const { served } = mirrored;
  const { last_event_id: common } = await appendPayloads(mirrored, "b1", [1, 2]);
  await pushAll(mirrored);
  await served.stop();
  await withDeployment(async (copy) => {
    await cp(served.logDir, copy.logDir, { recursive: true });
    await served.start();
    const { last_event_id } = await appendPayloads(mirrored, "b2", [3]);
    await pushAll(mirrored);
    await copy.start();
    const other = { ...mirrored, served: copy };
    await appendPayloads(other, "b2", [3]);
    const told = await refusal(other);
    assert.match(
      told,
      new RegExp(`^event ${last_event_id} \\(message 3, .*\\) is not in this log`),
    );
    assert.match(told, new RegExp(`the last event in both is ${common}, message 2\\.`));
  });
  assert.equal(await lastSequence(mirrored.nats), 3);
});

testWithNats("push continues after all messages have expired", async (mirrored) => {
  const { nats } = mirrored;
  await appendPayloads(mirrored, "b1", [1, 2]);
  const pusher = startPush(mirrored);
  await untilPrinted(pusher, ({ stdout }) => stdout.startsWith("2 events"));
  await purge(nats);
  await pushAll(mirrored);
  const { last_event_id } = await appendPayloads(mirrored, "b2", [3]);
  await untilPrinted(pusher, ({ stdout }) => stdout.includes(`1 events, through ${last_event_id}`));
  await end(pusher, "SIGTERM");
  assert.equal(await lastSequence(nats), 3);
});

testWithNats(
  "push requires --after when messages expired while it was stopped",
  async (mirrored) => {
    const { nats } = mirrored;
    const { last_event_id } = await appendPayloads(mirrored, "b1", [1, 2]);
    await pushAll(mirrored);
    await purge(nats);
    await appendPayloads(mirrored, "b2", [3]);
    assert.match(
      await refusal(mirrored),
      /^message 2, .* has expired, and the log has 3 events: .*--after/,
    );
    const pusher = startPush(mirrored, nats.url, ["--after", last_event_id, "--once"]);
    assert.equal((await pusher.exited).code, 0);
    assert.equal(await lastSequence(nats), 3);
  },
);

testWithNats("push authenticates with the user and password in NATS_URL", async (mirrored) => {
  const { url } = mirrored.nats;
  const as = (who: string) => url.replace("//", `//${who}@`);
  await appendPayloads(mirrored, "b1", [1]);
  process.env.NATS_URL = as("ada:s%2Fecret");
  const pusher = startPush(mirrored, "");
  await untilPrinted(pusher, ({ stdout }) => stdout.startsWith("1 events"));
  assert.equal(await end(pusher, "SIGTERM"), 0);
  process.env.NATS_URL = as("ada:wrong");
  const told = await refusal(mirrored, "");
  delete process.env.NATS_URL;
  assert.match(told, /authorization violation/i);
  assert.doesNotMatch(told, /wrong/);
}, { config: 'authorization: { user: "ada", password: "s/ecret" }' });

testWithNats("push refuses a stream that does not accept its subjects", async (mirrored) => {
  const { streams } = await jetstreamManager(await mirrored.nats.connect());
  await streams.add({ name: STREAM, subjects: ["elsewhere.>"] });
  assert.match(
    await refusal(mirrored),
    /subjects elsewhere\.>: add ground\.\*\.\* to them/,
  );
});

testWithNats("push ends when a file that is no socket appears at its path", async (mirrored) => {
  const { folder } = mirrored.served;
  const socket = join(folder, "later");
  const pusher = startMirror(["push", "--socket", socket, "--nats", mirrored.nats.url]);
  await untilReported(pusher, "reconnecting");
  await writeFile(socket, "");
  const { code, stderr } = await pusher.exited;
  assert.equal(code, 1);
  assert.match(stderr, /later failed: the path is not a socket\n$/);
});

const privileged = await whyPrivileged();
test(
  "push exits with status 2 if it may not write to the socket",
  { skip: privileged ?? false },
  () =>
    withServing(async ({ socketPath }) => {
      await chmod(socketPath, 0o400);
      const push = ["push", "--socket", socketPath];
      const options = { wrapper: UNPRIVILEGED };
      const { code, stderr } = await startMirror(push, undefined, undefined, options).exited;
      assert.equal(code, 2, stderr);
      assert.match(stderr, /^--socket: .*permission denied|^--socket: .*EACCES/im);
    }),
);

test("mirror exits with status 2 for invalid arguments", async () => {
  const refused: [string[], RegExp][] = [
    [[], /no command: expected push/],
    [["push"], /push requires --socket/],
    [["push", "--socket", ""], /^--socket: push expects the path .* but got 0 bytes$/m],
    [["push", "--socket", "s".repeat(108)], /^--socket: push expects the path .* 108 bytes$/m],
    [["push", "--socket", "unix:s"], /^--socket: push expects the path .* but got a URL$/m],
    [["push", "--socket", "/dev/null"], /^--socket: \S+ is not a socket$/m],
    [["push", "--socket", "/dev/null/s"], /^--socket: .*not a directory/im],
    [["push", "--socket", "s", "--stream", "a.b"], /a\.b is not a valid NATS name/],
    [["push", "--socket", "s", "--token", "t"], /Unknown option '--token'/],
    [["push", "--socket", "s", "--token-file", "/none"], /--token-file: ENOENT/],
    [["restore", "--nats", "nats://u:p@h", "d"], /password in --nats: set NATS_URL instead/],
    [["restore", "--once", "d"], /restore does not accept --once/],
    [["restore", "--head", "AB", "d"], /AB: a chain head must be 64 lowercase hex digits/],
    [["segments", "d"], /segments requires --to/],
    [["standby"], /standby requires a deployment directory/],
  ];
  for (const [args, reason] of refused) {
    const { code, stderr } = await startMirror(args).exited;
    assert.equal(code, 2, stderr);
    assert.match(stderr, reason);
  }
});
