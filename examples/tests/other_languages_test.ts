/** Runs `examples/python/` and `examples/shell/` against a served deployment. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { idBefore } from "../../src/event/event_id.ts";
import { runCli, spawnCli, type Spawned, untilPrinted } from "../../tools/support/program.ts";
import {
  keepSilent,
  lines,
  type Reply,
  withFakeService,
} from "../../tests/client/support/fake_service.ts";
import { type Deployment, withDeployment, withServing } from "../../tests/support/deployment.ts";
import { exampleAt, needs, run } from "./support/programs.ts";
import { startExample } from "./support/run_script.ts";
import { append, readLog } from "./support/served.ts";

const NEEDS_SHELL = needs("bash", "curl", "jq");
const NEEDS_PYTHON = needs("python3");

const POLL_MS = 5;

/** Returns the options for a test that needs a Python package. */
function needsPackage(name: string, version: string): { skip: string | false } {
  if (NEEDS_PYTHON.skip !== false) return NEEDS_PYTHON;
  const code = `import importlib.metadata as m; print(m.version("${name}"))`;
  const installed = run(["python3", "-c", code]).stdout.trim();
  const isFit = version === "" ? installed !== "" : installed === version;
  const install = "pip install -r examples/python/requirements.txt";
  return { skip: !isFit && `${name} ${version} is not installed: ${install}` };
}

/** Starts an example and collects its output. */
function start(path: string, ...args: string[]): Spawned {
  const script = exampleAt(path);
  return path.endsWith(".py")
    ? spawnCli([script, ...args], { executable: "python3" })
    : spawnCli(args, { executable: script });
}

const EVENTS = ["1", "2", "3"].map((record_key) => ({
  stream: "orders",
  record_key,
  kind: "upserted",
  payload: { "€": ["a\u2028b\\n", 1e21, 0.1, null] },
}));

/** Checks that an example follows the log and resumes after the service is killed. */
async function checkConsumer(served: Deployment, path: string): Promise<void> {
  const cursor = join(served.folder, "cursor");
  const args = ["--socket", served.socketPath, "--cursor", cursor];
  await append(served, "1", EVENTS);
  const follower = start(path, ...args);
  const printed = () => follower.output.stdout.split("\n").filter((line) => line !== "");
  try {
    await untilPrinted(follower, () => printed().length === 3);
    await append(served, "2", EVENTS);
    await untilPrinted(follower, () => printed().length === 6);
    await served.stop("SIGKILL");
    await untilPrinted(follower, ({ stderr }) => stderr.includes("reconnecting"));
    await served.start();
    await append(served, "3", EVENTS);
    await untilPrinted(follower, () => printed().length === 9);
    const last = JSON.parse(printed().at(-1)!).event_id;
    while (readFileSync(cursor, "utf8") !== `${last}\n`) await delay(POLL_MS);
  } finally {
    follower.child.kill();
    await follower.exited;
  }
  const log = await readLog(served);
  assert.deepEqual(printed().map((line) => JSON.parse(line)), log);
  await append(served, "4", EVENTS);
  const rest = await start(path, ...args, "--once").exited;
  assert.deepEqual([rest.code, rest.stdout.split("\n").length], [0, 4], rest.stderr);
  assert.equal(readFileSync(cursor, "utf8"), `${(await readLog(served)).at(-1)!.event_id}\n`);

  await writeFile(cursor, "ffffffff-ffff-7fff-bfff-ffffffffffff\n");
  const beyond = await start(path, ...args, "--once").exited;
  assert.equal(beyond.code, 1);
  assert.match(beyond.stderr, /is not in the log, which ends at/);
  await writeFile(cursor, `${idBefore(log[0]!.event_id)}\n`);
  const lost = await start(path, ...args, "--once").exited;
  assert.deepEqual([lost.code, lost.stdout], [1, ""]);
  assert.match(lost.stderr, /is not in the log, which ends at/);
  for (const text of ["", "no event id\n"]) {
    await writeFile(cursor, text);
    const refused = await start(path, ...args, "--once").exited;
    assert.equal(refused.code, 1);
    assert.ok(refused.stderr.includes(`${cursor} does not contain an event id`), refused.stderr);
  }
}

test(
  "consumer.py follows the log with the requests package and resumes",
  needsPackage("requests", ""),
  () => withServing((served) => checkConsumer(served, "python/consumer.py")),
);

test(
  "follow.sh follows the log with curl and resumes",
  NEEDS_SHELL,
  () => withServing((served) => checkConsumer(served, "shell/follow.sh")),
);

/** Checks that an example reconnects if it is sent nothing, unless it has the whole log. */
async function checkSilence(path: string): Promise<void> {
  const source = readFileSync(exampleAt(path), "utf8");
  const impatient = source.replace(/^(.*read_timeout_s ?= ?)60$/im, "$11");
  assert.notEqual(impatient, source);
  const next_after = "01900000-0000-7000-8000-000000000001";
  const event = { type: "events", events: [], next_after };
  const ended = Promise.withResolvers<void>();
  const sessions: Reply[] = [
    keepSilent,
    lines([], "stay"),
    lines([event], "stay"),
    async (response, request) => {
      await lines([{ type: "caught_up", next_after }], "stay")(response, request);
      await ended.promise;
      response.end('{"type":"end","reason":"shutdown"}\n');
    },
  ];
  await withFakeService([...sessions, keepSilent], async ({ client, socketPath, seen }) => {
    const script = `${socketPath}.script`;
    await writeFile(script, impatient, { mode: 0o755 });
    const executable = path.endsWith(".py") ? "python3" : "bash";
    const args = [script, "--socket", socketPath, "--cursor", `${socketPath}.cursor`];
    const follower = spawnCli(args, { executable });
    const failures = () => follower.output.stderr.match(/^.*(?=; reconnecting)/gm) ?? [];
    try {
      await untilPrinted(follower, () => failures().length === 3);
      while (seen.length < sessions.length) await delay(POLL_MS);
      // A read that starts now ends at its deadline, after that of the follow would have expired.
      await assert.rejects(client.streams(), /got no response/);
      ended.resolve();
      await untilPrinted(follower, () => failures().length === 4);
    } finally {
      follower.child.kill();
      await follower.exited;
    }
    const reasons = failures().map((line) => line.replace("follow: ", ""));
    const silence = "the service sent nothing for 1 s";
    assert.deepEqual(reasons, [silence, silence, silence, "shutdown"]);
  }, { readTimeoutMs: 2000, attemptsMax: 1 });
}

for (const path of ["python/consumer.py", "shell/follow.sh"]) {
  test(
    `${path} says so and reconnects if the service sends nothing, unless it has the whole log`,
    path.endsWith(".sh") ? NEEDS_SHELL : needsPackage("requests", ""),
    () => checkSilence(path),
  );
}

/** Checks that an example appends each batch once, even if the service is killed. */
async function checkConnector(served: Deployment, appending: () => Spawned): Promise<void> {
  const first = await appending().exited;
  assert.match(first.stdout, /^committed 1000 events .*\ncommitted 500 events /, first.stderr);
  await served.stop("SIGKILL");
  const second = appending();
  await untilPrinted(second, ({ stderr }) => stderr.includes("retrying"));
  await served.start();
  const { code, stdout } = await second.exited;
  assert.equal(code, 0);
  assert.match(stdout, /^duplicate 1000 events .*\nduplicate 500 events /);
  const log = await readLog(served);
  assert.deepEqual(log.map(({ record_key }) => record_key), KEYS);
  assert.deepEqual(log[7]!.payload, { id: "7", name: 'Ä "7", \u2028' });
}

const KEYS = Array.from({ length: 1500 }, (_, index) => String(index));
const NAME_OF = (key: string) => `Ä "${key}", \u2028`;

test(
  "connector.py appends a CSV file once, no matter how often it runs",
  NEEDS_PYTHON,
  () =>
    withServing(async (served) => {
      const file = join(served.folder, "people.csv");
      const rows = KEYS.map((key) => `${key},"${NAME_OF(key).replaceAll('"', '""')}"\n`);
      await writeFile(file, `id,name\n${rows.join("")}`);
      const args = ["--socket", served.socketPath, "--stream", "people", file];
      await checkConnector(served, () => start("python/connector.py", ...args));
      await writeFile(file, `id,name\n${"k".repeat(1025)},too long a key\n`);
      const refused = await start("python/connector.py", ...args).exited;
      assert.equal(refused.code, 1);
      assert.match(refused.stderr, /^invalid_events: .*\n {2}event 0: record_key /);
    }),
);

test(
  "append.sh appends JSON lines once, no matter how often it runs",
  NEEDS_SHELL,
  () =>
    withServing(async (served) => {
      const file = join(served.folder, "events.ndjson");
      const lines = KEYS.map((record_key) => {
        const payload = { id: record_key, name: NAME_OF(record_key) };
        return JSON.stringify({ stream: "people", record_key, kind: "upserted", payload }) + "\n";
      });
      await writeFile(file, lines.join(""));
      const args = ["--socket", served.socketPath, "--source", "import", "--batch", "b"];
      const script = exampleAt("shell/append.sh");
      const words = ["-c", 'exec "$@" < "$0"', file, script, ...args];
      await checkConnector(served, () => spawnCli(words, { executable: "bash" }));
      await writeFile(file, '{"stream": "people"}\n');
      const refused = await runCli(words, { executable: "bash" });
      assert.equal(refused.code, 1);
      const missing = /^append: invalid_events: .*\n {2}event 0: missing member record_key\n$/;
      assert.match(refused.stderr, missing);
      await writeFile(file, '{"stream": \n');
      const broken = await runCli(words, { executable: "bash" });
      assert.equal(broken.code, 1);
      assert.match(broken.stderr, /append: lines 1 to 1: not one JSON object per line\n$/);
    }),
);

test(
  "groundhog-sdk 0.3.0 works unmodified",
  needsPackage("groundhog-sdk", "0.3.0"),
  () =>
    withServing(async (served) => {
      for (const status of ["committed", "duplicate"]) {
        const { stdout, stderr } = await start("python/groundhog.py", "--socket", served.socketPath)
          .exited;
        assert.equal(stderr, "");
        const lines = stdout.trimEnd().split("\n");
        assert.match(lines[0]!, new RegExp(`^${status} 4 events through `));
        assert.equal(lines[1], "stripe customers 4");
        const events = (await readLog(served)).map(({ event_id, kind, record_key }) =>
          `${event_id} ${kind} ${record_key}`
        );
        assert.deepEqual(
          lines.slice(2).map((line) => line.split(" ").slice(0, 3).join(" ")),
          events,
        );
      }
    }),
);

const WAITING: [path: string, need: { skip: string | false }][] = [
  ["python/connector.py", NEEDS_PYTHON],
  ["python/consumer.py", needsPackage("requests", "")],
  ["python/groundhog.py", needsPackage("groundhog-sdk", "0.3.0")],
  ["shell/append.sh", NEEDS_SHELL],
  ["shell/follow.sh", NEEDS_SHELL],
];
for (const [path, need] of WAITING) {
  test(
    `${path} waits for the socket, but not at a path that cannot be one`,
    need,
    () =>
      withDeployment(async (deployment) => {
        const { folder } = deployment;
        const file = join(folder, "rows.csv");
        await writeFile(file, "");
        const args: Record<string, string[]> = {
          "python/connector.py": ["--stream", "s", file],
          "python/consumer.py": ["--cursor", join(folder, "cursor"), "--once"],
          "python/groundhog.py": [],
          "shell/append.sh": ["--source", "s", "--batch", "b"],
          "shell/follow.sh": ["--cursor", join(folder, "cursor"), "--once"],
        };
        const refused = await start(path, "--socket", file, ...args[path]!).exited;
        assert.equal(refused.code, 1);
        assert.match(refused.stderr, /rows\.csv: not a socket\n$/);
        const long = await start(path, "--socket", file.padEnd(108, "x"), ...args[path]!).exited;
        assert.equal(long.code, 1);
        assert.match(long.stderr, /x: longer than 10[37] bytes\n$/);
        const waiting = start(path, "--socket", deployment.socketPath, ...args[path]!);
        await deployment.start();
        const { code, stderr } = await waiting.exited;
        assert.equal(code, 0, stderr);
      }),
  );
}

for (const [path, need] of WAITING.filter(([path]) => path.endsWith(".py"))) {
  test(
    `${path} ends quietly once standard output is closed`,
    need,
    () =>
      withServing(async (served) => {
        const file = join(served.folder, "rows.csv");
        await writeFile(file, "id\n1\n");
        await append(served, "1", EVENTS);
        const args: Record<string, string[]> = {
          "python/connector.py": ["--stream", "s", file],
          "python/consumer.py": ["--cursor", join(served.folder, "cursor")],
          "python/groundhog.py": [],
        };
        const wrapper = ["sh", "-c", '("$@"; echo "status $?" >&2) | :', "sh"];
        const command = [exampleAt(path), "--socket", served.socketPath, ...args[path]!];
        const { stderr } = await spawnCli(command, { executable: "python3", wrapper }).exited;
        assert.equal(stderr, "status 141\n");
      }),
  );
}

/** Paths of the programs in subdirectories of `examples/`. */
const PROGRAMS = ["", "ops/", "python/", "shell/", "viewer/"].flatMap((folder) =>
  readdirSync(exampleAt(folder))
    .filter((name) => /\.(py|sh)$|^server\.ts$/.test(name))
    .map((name) => folder + name)
);

test("every example has an entry in examples/README.md", () => {
  const readme = readFileSync(exampleAt("README.md"), "utf8");
  for (const name of PROGRAMS) assert.ok(readme.includes(`(${name})`), `no entry for ${name}`);
});

for (const path of PROGRAMS) {
  const isPython = path.endsWith(".py");
  test(
    `${path} --help prints the usage and nothing else`,
    isPython ? NEEDS_PYTHON : {},
    async () => {
      const isScript = !path.endsWith(".ts");
      // -S hides the packages that are installed.
      const started = isPython
        ? spawnCli(["-S", exampleAt(path), "--help"], { executable: "python3" })
        : isScript
        ? start(path, "--help")
        : startExample(path.slice(0, -3), ["--help"]);
      const { code, stdout, stderr } = await started.exited;
      assert.deepEqual([code, isScript ? stderr : ""], [0, ""]);
      assert.match(stdout, /^usage: /);
    },
  );
}
