/** The commands `append`, `tail` and `streams`, with the real program and service. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { type Deployment, withDeployment, withServing } from "../support/deployment.ts";
import { skipLoudly } from "../faults/support/skip.ts";
import { UNPRIVILEGED, whyPrivileged } from "../support/unprivileged.ts";
import {
  type CliExit,
  signalChild,
  spawnCli,
  type Spawned,
  untilPrinted,
  untilReported,
} from "../../tools/support/program.ts";

/** Runs the program with a file or FIFO as its standard input. */
function spawnReading(deployment: Deployment, input: string, args: string[]): Spawned {
  const wrapper = ["sh", "-c", 'exec "$@" < "$0"', input];
  return spawnCli([...args, "--config", deployment.configPath], { wrapper });
}

async function append(deployment: Deployment, text: string, args: string[]): Promise<CliExit> {
  const input = join(deployment.folder, "input");
  await writeFile(input, text);
  return await spawnReading(deployment, input, ["append", ...args]).exited;
}

function lineOf(number: number, members: object = {}): string {
  const plain = { "é": '\u0001\u2028"\\"10":', b: [1e21, 1.5], a: {}, number };
  // Stored in another form than JSON.stringify() has: names are sorted as strings.
  const payload = number % 2 === 0 ? plain : { ...plain, "10": null, "9": null };
  return JSON.stringify({ record_key: `${number}`, kind: "upserted", payload, ...members });
}

const linesOf = (count: number) => Array.from({ length: count }, (_, n) => lineOf(n)).join("\n");
const ofLines = (text: string) => text.split("\n").slice(0, -1);

/** The events in the tail, as stored. */
async function storedLines({ logDir }: Deployment): Promise<string[]> {
  const tail = await readFile(join(logDir, "tail.ndjson"), "utf8");
  return tail.split("\n").filter((line) => line.startsWith('{"event_id"'));
}

test("append prints a receipt per batch of 1,000 lines, and a prefix makes the input repeatable", () =>
  withServing(async (deployment) => {
    const args = ["--source", "shop", "--stream", "orders", "--batch-id", "run"];
    const input = `${linesOf(2400)}\n${lineOf(7, { stream: "returns" })}`;
    const { code, stdout, stderr } = await append(deployment, input, args);
    assert.deepEqual([code, stderr], [0, ""]);
    const receipts = ofLines(stdout).map((line) => JSON.parse(line));
    assert.deepEqual(receipts.map(({ status, events }) => [status, events]), [
      ["committed", 1000],
      ["committed", 1000],
      ["committed", 401],
    ]);
    const stored = (await storedLines(deployment)).map((line) => JSON.parse(line));
    assert.equal(stored.length, 2401);
    assert.deepEqual(
      new Set(stored.map(({ batch_id }) => batch_id)),
      new Set(["run/1", "run/2", "run/3"]),
    );
    assert.deepEqual([stored[0].stream, stored[2400].stream], ["orders", "returns"]);

    const again = await append(deployment, input, args);
    assert.equal(again.stdout, stdout.replaceAll("committed", "duplicate"));
    const other = await append(deployment, lineOf(8), args);
    assert.deepEqual([other.code, other.stdout], [1, ""]);
    assert.match(
      other.stderr,
      /^batch_id_conflict: .*\nnothing of line 1 was written; no line/,
    );

    const listed = await deployment.run(["streams", "--source", "shop"]);
    const counts = ofLines(listed.stdout).map((line) => JSON.parse(line))
      .map(({ stream, event_count }) => [stream, event_count]);
    assert.deepEqual(counts, [["orders", 2400], ["returns", 1]]);
  }));

const BAD_LINES: [line: string, reason: RegExp][] = [
  [
    lineOf(1, { kind: "" }),
    /^line 1001: kind must not be empty\nnothing of lines 1001 to 1002 was/,
  ],
  [lineOf(1, { kind: 5 }), /^line 1001: kind must be a string\n/],
  ['{"record_key":', /^line 1001: not valid JSON at byte 14: unexpected end of input/],
  ["", /^line 1001: is empty; lines 1 to 1000 are committed\n$/],
  ['{},{"kind":"a"}', /^line 1001: /],
  ["[1]", /^line 1001: event must be an object/],
];
for (const [line, reason] of BAD_LINES) {
  test(`append names the bad line, and writes nothing of its batch: ${line.slice(0, 40)}`, () =>
    withServing(async (deployment) => {
      const input = `${linesOf(1000)}\n${line}\n${lineOf(3)}\n`;
      const { code, stdout, stderr } = await append(deployment, input, [
        "--source",
        "shop",
        "--stream=orders",
        // On a busy machine, batches would end by time.
        "--batch-id=run",
      ]);
      assert.equal(code, 1);
      assert.match(stderr, reason);
      assert.match(stderr, /lines 1 to 1000 are committed\n$/);
      assert.equal(ofLines(stdout).length, 1);
      assert.equal((await storedLines(deployment)).length, 1000);
    }));
}

/** Runs `append` with an input that has only these lines so far, and does not end. */
async function withOpenInput(
  deployment: Deployment,
  lines: string,
  use: (appending: Spawned) => Promise<void>,
): Promise<void> {
  const fifo = join(deployment.folder, "fifo");
  assert.equal(spawnSync("mkfifo", [fifo]).status, 0);
  const args = ["append", "--source", "shop", "--stream", "orders"];
  const appending = spawnReading(deployment, fifo, args);
  const input = createWriteStream(fifo);
  try {
    input.write(lines);
    await use(appending);
  } finally {
    input.destroy();
    await once(input, "close");
  }
}

test("append sends what it has read when no more input comes, and SIGINT ends it with status 0", () =>
  withServing((deployment) =>
    withOpenInput(deployment, `${lineOf(1)}\n${lineOf(2)}\n`, async (appending) => {
      await untilPrinted(appending, ({ stdout }) => stdout.includes("\n"));
      assert.equal(JSON.parse(appending.output.stdout).events, 2);
      signalChild(appending.child, "SIGINT");
      const { code, stderr } = await appending.exited;
      assert.deepEqual([code, stderr], [0, ""]);
    })
  ));

test("append reports a refused batch when no more input comes", () =>
  withServing((deployment) =>
    withOpenInput(deployment, `${lineOf(1, { kind: "" })}\n`, async (appending) => {
      const { code, stderr } = await appending.exited;
      assert.equal(code, 1);
      assert.match(stderr, /^line 1: kind must not be empty\n/);
    })
  ));

test("tail prints events exactly as stored: all, those that match, and the last ones", () =>
  withServing(async (deployment) => {
    for (const stream of ["a", "b", "a"]) {
      await append(deployment, linesOf(1500), ["--source", "shop", "--stream", stream]);
    }
    const stored = await storedLines(deployment);
    const inA = stored.filter((line) => line.includes('"stream":"a"'));
    const idOf = (line: string) => JSON.parse(line).event_id;
    const cases: [args: string[], lines: string[]][] = [
      [[], stored],
      [["--stream", "a"], inA],
      [
        ["--source", "shop", "--record-key", "3", "--kind", "upserted"],
        stored.filter((line) => line.includes('"record_key":"3"')),
      ],
      [["--after", idOf(stored[2990]!)], stored.slice(2991)],
      [["--since", "10m"], stored],
      [["--since", "2999-01-01"], []],
      [["--last", "0"], []],
      [["--last", "7"], stored.slice(-7)],
      [["--last", "1700", "--stream=a"], inA.slice(-1700)],
      [["--last", "9000", "--stream=b"], stored.slice(1500, 3000)],
    ];
    for (const [args, lines] of cases) {
      const { code, stdout, stderr } = await deployment.run(["tail", ...args]);
      assert.deepEqual([code, stderr], [0, ""], args.join(" "));
      assert.deepEqual(ofLines(stdout), lines, args.join(" "));
    }
  }));

test("tail --last 0 --follow prints what is committed from now on, across a restart", () =>
  withServing(async (deployment) => {
    await deployment.append("before");
    const args = ["tail", "--last", "0", "--follow", "--config", deployment.configPath];
    const following = spawnCli(args);
    // The follow has started once it prints an event.
    for (let number = 0; following.output.stdout === ""; number++) {
      await deployment.append(`first/${number}`);
    }
    await deployment.stop();
    await untilReported(following, "follow interrupted: the service has ended it");
    await deployment.start();
    await deployment.append("after the restart");
    await untilPrinted(following, ({ stdout }) => stdout.includes("after the restart"));
    signalChild(following.child, "SIGINT");
    const { code, stdout, stderr } = await following.exited;
    assert.equal(code, 0);
    assert.equal(stderr.match(/follow interrupted/g)?.length, 1, stderr);
    const stored = await storedLines(deployment);
    const lines = ofLines(stdout);
    assert.deepEqual(lines, stored.slice(-lines.length));
    assert.ok(lines.length < stored.length);
  }));

test("tail ends quietly when standard output is closed", () =>
  withServing(async (deployment) => {
    await append(deployment, linesOf(3000), ["--source", "shop", "--stream", "a"]);
    const wrapper = ["sh", "-c", '("$@"; echo "status $?" >&2) | head -n 1', "sh"];
    const args = ["tail", "--config", deployment.configPath];
    const { stdout, stderr } = await spawnCli(args, { wrapper }).exited;
    assert.deepEqual([ofLines(stdout).length, stderr], [1, "status 0\n"]);
  }));

for (const command of [["tail", "--follow"], ["streams"], ["append", "--source", "shop"]]) {
  test(`without a service, ${command[0]} says how to start one`, () =>
    withDeployment(async (deployment) => {
      const { code, stdout, stderr } = await deployment.run(command);
      assert.deepEqual([code, stdout], [1, ""]);
      assert.match(stderr, /^no service answers: .*; start one with: \S+ --config \S+ serve\n$/);
    }));
}

test("streams reports a socket without access, and a value that the service refuses", async (context) => {
  const reason = await whyPrivileged();
  if (reason !== null) return skipLoudly(context, reason);
  await withServing(async (deployment) => {
    const refused = await deployment.run(["streams", "--source=A"]);
    assert.equal(refused.code, 2);
    assert.match(refused.stderr, /^invalid_streams_request: source must match/);
    await chmod(deployment.socketPath, 0o000);
    const { code, stderr } = await deployment.run(["streams"], { wrapper: UNPRIVILEGED });
    assert.equal(code, 1);
    assert.match(stderr, /ground\.sock.*; run as the user that owns the deployment\n$/);
  });
});

test("append refuses a directory as its standard input", () =>
  withDeployment(async (deployment) => {
    const args = ["append", "--source", "shop"];
    const { code, stderr } = await spawnReading(deployment, deployment.folder, args).exited;
    assert.equal(code, 2);
    assert.match(stderr, /^standard input is a directory/);
  }));

const MISTAKES: [args: string[], reason: RegExp][] = [
  [["tail", "--last", "-1"], /ambiguous|--last/],
  [["tail", "--last=x"], /^--last must be a count/],
  [["tail", "--since=yesterday"], /^--since must be a time/],
  [["tail", "--since=2026-02-31"], /^--since must be a time/],
  [["tail", "--after=1"], /^--after must be an event id/],
  [["tail", "--last=1", "--since=1m"], /^tail accepts only one of --since, --last/],
  [["append", "--source=A"], /^--source must match/],
  [
    ["append", "--source=a", "--batch-id=service/x"],
    /^--batch-id must not start with the reserved/,
  ],
];
test("append and tail exit with status 2 for unusable values", () =>
  withDeployment(async (deployment) => {
    for (const [args, reason] of MISTAKES) {
      const { code, stderr } = await deployment.run(args);
      assert.equal(code, 2, args.join(" "));
      assert.match(stderr, reason);
    }
  }));
