/** `tail_log` against a served deployment: each event is printed once, in order, across runs. */
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { SubmittedEvent } from "../../mod.ts";
import { parseSince } from "../support/since.ts";
import { untilPrinted } from "../../tools/support/program.ts";
import { runExample, startExample } from "./support/run_script.ts";
import { append, readLog } from "./support/served.ts";
import { idBefore } from "../../src/event/event_id.ts";
import { type Deployment, withServing } from "../../tests/support/deployment.ts";

function makeEvents(count: number, prefix = "key"): SubmittedEvent[] {
  return Array.from({ length: count }, (_, index) => ({
    stream: index % 2 === 0 ? "even" : "odd",
    record_key: `${prefix}-${index}`,
    kind: "upserted",
    payload: index,
  }));
}

async function tailOnce({ socketPath }: Deployment, ...args: string[]): Promise<string[]> {
  const { code, stdout, stderr } = await runExample("tail_log", [socketPath, "--once", ...args]);
  assert.deepEqual([code, stderr], [0, ""]);
  return stdout.split("\n").slice(0, -1);
}

test("tail_log prints every event in order, page by page, and resumes at its cursor", async () => {
  await withServing(async (served) => {
    const cursor = join(served.folder, "cursor");
    assert.deepEqual(await tailOnce(served, "--cursor", cursor), []);

    await append(served, "1", makeEvents(25));
    const expected = (await readLog(served)).map((event) =>
      `${event.event_id} test/${event.stream} upserted ${event.record_key}`
    );
    assert.deepEqual(await tailOnce(served, "--cursor", cursor, "--limit", "10"), expected);
    const last = expected.at(-1)!.split(" ")[0];
    assert.equal(await readFile(cursor, "utf8"), `${last}\n`);

    assert.deepEqual(await tailOnce(served, "--cursor", cursor), []);
    await append(served, "2", makeEvents(1, "later"));
    const later = await tailOnce(served, "--cursor", cursor);
    assert.match(later.join(), /^\S+ test\/even .* later-0$/);
  });
});

test("tail_log prints only events that match its filters and advances past the others", async () => {
  await withServing(async (served) => {
    const cursor = join(served.folder, "cursor");
    await append(served, "1", makeEvents(10));
    const lines = await tailOnce(served, "--stream", "odd", "--cursor", cursor, "--limit", "2");
    assert.deepEqual(
      lines.map((line) => line.split(" ").at(-1)),
      [1, 3, 5, 7, 9].map((at) => `key-${at}`),
    );
    assert.deepEqual(await tailOnce(served, "--kind", "deleted", "--source", "test"), []);
  });
});

test("tail_log prints every event on one line, without control characters", async () => {
  await withServing(async (served) => {
    const hostile = "a\nb\u001b[31m\u2028\u202e\u0000ä \u{1f600}";
    await append(served, "1", [{
      stream: "s",
      record_key: hostile,
      kind: "k\r",
      payload: hostile,
    }]);
    const [line, ...rest] = await tailOnce(served);
    assert.deepEqual(rest, []);
    assert.match(
      line!,
      / test\/s k\\u\{d\} a\\u\{a\}b\\u\{1b\}\[31m\\u\{2028\}\\u\{202e\}\\u\{0\}ä /,
    );
    const [json] = await tailOnce(served, "--json");
    assert.deepEqual(JSON.parse(json!), (await readLog(served))[0]);
  });
});

test("tail_log --last prints the last events of the log or of a record", async () => {
  await withServing(async (served) => {
    assert.deepEqual(await tailOnce(served, "--last", "3"), []);
    for (const batch of ["1", "2", "3"]) await append(served, batch, makeEvents(20));
    const all = await tailOnce(served);
    for (const count of [1, 3, 25, 60, 61]) {
      assert.deepEqual(await tailOnce(served, "--last", `${count}`), all.slice(-count));
    }
    const ofRecord = all.filter((line) => line.endsWith(" key-4"));
    const filter = ["--record-key", "key-4", "--limit", "7"];
    assert.deepEqual(await tailOnce(served, ...filter), ofRecord);
    assert.deepEqual(await tailOnce(served, "--last", "2", ...filter), ofRecord.slice(-2));
    assert.deepEqual(await tailOnce(served, "--last", "2", "--kind", "none"), []);
  });
});

test("tail_log --since prints the events committed since a time", async () => {
  await withServing(async (served) => {
    assert.deepEqual(await tailOnce(served, "--since", "1h"), []);
    await append(served, "1", makeEvents(3, "before"));
    const [{ observed_at } = { observed_at: "" }] = await readLog(served);
    while (new Date().toISOString() <= observed_at);
    await append(served, "2", makeEvents(3, "since"));
    const { observed_at: time } = (await readLog(served)).at(-1)!;
    const all = await tailOnce(served);
    for (const since of ["yesterday 14:00", "yesterday", "2d", observed_at]) {
      assert.deepEqual(await tailOnce(served, "--since", since), all, since);
    }
    assert.deepEqual(await tailOnce(served, "--since", time), all.slice(3));
    assert.deepEqual(await tailOnce(served, "--since", "9999-12-31"), []);
  });
});

test("parseSince() reads durations, days, times and timestamps", () => {
  const now = new Date(2026, 0, 31, 9, 30).getTime();
  const expected: [string, Date | null][] = [
    ["90m", new Date(2026, 0, 31, 8, 0)],
    ["14:05", new Date(2026, 0, 31, 14, 5)],
    ["yesterday 14:00", new Date(2026, 0, 30, 14, 0)],
    ["today", new Date(2026, 0, 31)],
    ["2026-01-29", new Date(2026, 0, 29)],
    ["2026-01-29 7:00", new Date(2026, 0, 29, 7)],
    ["2026-01-29 07:00", new Date(2026, 0, 29, 7)],
    ["2026-01-29T07:00:00Z", new Date("2026-01-29T07:00:00Z")],
    ...["", "24:00", "tomorrow", "5", "2026-13-01"].map((text): [string, null] => [text, null]),
  ];
  for (const [text, date] of expected) {
    assert.equal(parseSince(text, now), date?.getTime() ?? null, text);
  }
});

test("tail_log waits for new events, even across a restart of the service", async () => {
  await withServing(async (served) => {
    await append(served, "1", makeEvents(1, "first"));
    const tail = startExample("tail_log", [served.socketPath, "--interval", "0.02"]);
    try {
      await untilPrinted(tail, ({ stdout }) => stdout.includes("first-0"));
      await append(served, "2", makeEvents(1, "second"));
      await untilPrinted(tail, ({ stdout }) => stdout.includes("second-0"));
      await served.stop("SIGKILL");
      await untilPrinted(tail, ({ stderr }) => stderr.includes("retrying"));
      await served.start();
      await append(served, "3", makeEvents(1, "third"));
      await untilPrinted(tail, ({ stdout }) => stdout.includes("third-0"));
      assert.equal(tail.output.stdout.split("\n").length, 4);
    } finally {
      tail.child.kill();
      await tail.exited;
    }
  });
});

test("tail_log refuses a cursor whose event the log has lost", async () => {
  await withServing(async (served) => {
    await append(served, "1", makeEvents(3));
    const [first] = await readLog(served);
    const cursor = join(served.folder, "cursor");
    await writeFile(cursor, `${idBefore(first!.event_id)}\n`);
    const args = [served.socketPath, "--once", "--cursor", cursor];
    const { code, stdout, stderr } = await runExample("tail_log", args);
    assert.deepEqual([code, stdout], [1, ""]);
    assert.match(stderr, /^position \S+ is no event in the log, which ends at /);
  });
});

test("tail_log reports errors and exits 1 or 2", async () => {
  await withServing(async (served) => {
    const { socketPath } = served;
    for (
      const args of [
        [],
        [socketPath, "more"],
        [socketPath, "--interval", "0"],
        [socketPath, "--last", "0"],
        [socketPath, "--since", "tomorrow"],
        [socketPath, "--since", "1h", "--last", "1"],
        [socketPath, "--wait", "x"],
      ]
    ) {
      assert.equal((await runExample("tail_log", args)).code, 2, args.join(" "));
    }
    const { stderr } = await runExample("tail_log", [socketPath, "more"]);
    assert.match(stderr, /^unexpected argument more\n/);
    const cursor = join(served.folder, "cursor");
    for (const text of ["", "no event id\n"]) {
      await writeFile(cursor, text);
      const unusable = await runExample("tail_log", [socketPath, "--once", "--cursor", cursor]);
      assert.equal(unusable.code, 1);
      assert.ok(unusable.stderr.startsWith(`${cursor} does not contain an event id`));
    }
    const refused = await runExample("tail_log", [socketPath, "--once", "--limit", "0"]);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /^service error: invalid_replay_request: /);
    await served.stop();
    const unreachable = await runExample("tail_log", [socketPath, "--once", "--wait", "0"]);
    assert.equal(unreachable.code, 1);
    assert.match(unreachable.stderr, /\/v1\/events/);
  });
});
