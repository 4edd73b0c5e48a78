/** Tests the scripts and systemd units in `examples/ops/`. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { parseArguments } from "../../src/commands/arguments.ts";
import { batchWith, commit, ingest } from "../../tests/contract/support/api.ts";
import { withServedLog } from "../../tests/contract/support/served_log.ts";
import { spawnCli, withFolder } from "../../tools/support/program.ts";
import { Deployment, withDeployment, withServing } from "../../tests/support/deployment.ts";
import { failNth } from "../../tests/support/storage_faults.ts";
import { exampleAt, needs, run, writeCommand } from "./support/programs.ts";

const NEEDS_SHELL = needs("bash", "curl", "jq", "flock");

/** Interval between looks at a cursor file. */
const POLL_MS = 20;

/** Runs a command while this process serves it. */
function runBeside([program, ...args]: string[]): Promise<{ status: number; stdout: string }> {
  return new Promise((resolve) => {
    execFile(program!, args, (error, stdout) => {
      resolve({ status: error === null ? 0 : Number(error.code), stdout });
    });
  });
}

/** Runs the probe. @returns its exit status and output. */
function probe({ socketPath, logDir }: Deployment, ...args: string[]): [number | null, string] {
  const paths = ["--socket", socketPath, "--log", logDir];
  const { status, stdout, stderr } = run([exampleAt("ops/probe.sh"), ...paths, ...args]);
  assert.equal(stderr, "");
  return [status, stdout];
}

test(
  "probe.sh reports the state of the log and its consumers to Nagios",
  NEEDS_SHELL,
  () =>
    withServing(async (served) => {
      const nothing = / \| tail=\d+B segments=0 free=\d+B$/m;
      assert.match(probe(served)[1], nothing);
      await served.append("1");
      const cursor = join(served.folder, "cursor");
      const { last_event_id } = served.receipts[0]!;
      const asConsumer = (id: string) => writeFile(cursor, `${id}\n`);

      await asConsumer(last_event_id);
      const lag = ["--cursor", `view=${cursor}`, "--lag-max", "3600"];
      const [status, line] = probe(served, ...lag);
      assert.equal(status, 0, line);
      assert.match(line, /^EVENTLOG OK - up \| .* age=\d+s lag_view=0s\n$/);

      await asConsumer("019b76da-a800-7001-8203-040506070809");
      assert.match(probe(served, ...lag)[1], /^EVENTLOG WARNING - view is \d+ s behind/);
      await asConsumer("ffffffff-a800-7001-8203-040506070809");
      assert.match(probe(served, ...lag)[1], /^EVENTLOG CRITICAL - the log ends before .* of view/);
      await asConsumer("not an id");
      assert.equal(probe(served, ...lag)[0], 3);

      assert.deepEqual(probe(served, "--tail-max", "1")[0], 1);
      assert.match(
        probe(served, "--free-min", `${2 ** 60}`)[1],
        /^EVENTLOG CRITICAL - \d+ bytes free/,
      );
      await served.stop();
      const [down, reason] = probe(served);
      assert.equal(down, 2);
      assert.match(reason, /^EVENTLOG CRITICAL - cannot read from .*ground\.sock: no such socket/);
      assert.equal(probe(served, "--lag-max", "soon")[0], 3);
    }),
);

test(
  "probe.sh reports no lag of a consumer whose filter matches nothing",
  NEEDS_SHELL,
  () =>
    withServing(async (served) => {
      await served.append("1");
      const cursor = join(served.folder, "cursor");
      const args = ["--socket", served.socketPath, "--cursor", cursor, "kind=nothing"];
      const consumer = spawnCli(args, { executable: exampleAt("shell/follow.sh") });
      const position = () => existsSync(cursor) ? readFileSync(cursor, "utf8").trim() : null;
      const at = async (place: number) => {
        while (position() !== served.receipts[place]!.last_event_id) await delay(POLL_MS);
      };
      try {
        await at(0);
        await served.append("2");
        const lag = ["--cursor", `view=${cursor}`, "--lag-max", "0"];
        assert.match(probe(served, ...lag)[1], /^EVENTLOG WARNING - view is \d+ s behind/);
        await at(1);
        assert.match(probe(served, ...lag)[1], /^EVENTLOG OK - up \| .* lag_view=0s\n$/);
      } finally {
        consumer.child.kill();
        await consumer.exited;
      }
    }),
);

test(
  "probe.sh and the restart unit find a writer that has stopped",
  NEEDS_SHELL,
  () =>
    withServedLog(async ({ socketPath, storage }) => {
      await withFolder(async (folder) => {
        await writeFile(join(folder, "manifest.json"), '{"segments":[]}');
        const probed = () =>
          runBeside([exampleAt("ops/probe.sh"), "--socket", socketPath, "--log", folder]);
        const unit = readFileSync(exampleAt("ops/eventlog-restart.service"), "utf8");
        const [, condition] = /^ExecCondition=\/bin\/sh -c '(.*)'$/m.exec(unit)!;
        const command = condition!.replace("/srv/log/data/ground.sock", socketPath);
        const conditioned = async () => (await runBeside(["sh", "-c", command])).status;

        await commit(socketPath, batchWith({ batch_id: "1" }));
        const { status, stdout } = await probed();
        // The ids of this log have a fixed time.
        assert.match(stdout, /^EVENTLOG (OK - up|WARNING - last event \d+ s in the future)/);
        assert.ok(status! < 2);
        assert.equal(await conditioned(), 1);

        storage.hook = failNth("sync", 1, { errno: "EIO" });
        assert.equal((await ingest(socketPath, batchWith({ batch_id: "2" }))).status, 503);
        const critical = await probed();
        assert.equal(critical.status, 2);
        assert.match(critical.stdout, /^EVENTLOG CRITICAL - the writer stopped, appends fail/);
        assert.equal(await conditioned(), 0);
      });
    }),
);

test(
  "probe.sh warns of a last event in the future",
  NEEDS_SHELL,
  () =>
    withServing(async (served) => {
      await served.append("1");
      const script = readFileSync(exampleAt("ops/probe.sh"), "utf8");
      const early = join(served.folder, "probe.sh");
      await writeFile(early, script.replace("date +%s%3N", "echo 1000000000000"), { mode: 0o755 });
      const args = ["--socket", served.socketPath, "--log", served.logDir];
      for (const limits of [[], ["--age-max", "60"]]) {
        const { status, stdout } = run([early, ...args, ...limits]);
        assert.match(stdout, /^EVENTLOG WARNING - last event \d+ s in the future: check the clock/);
        assert.match(stdout, / age=-\d+s/);
        assert.equal(status, 1);
      }
    }),
);

test(
  "probe.sh writes metrics for Prometheus, even while the service is down",
  NEEDS_SHELL,
  () =>
    withServing(async (served) => {
      await served.append("1");
      const cursor = join(served.folder, "cursor");
      await writeFile(cursor, served.receipts[0]!.last_event_id);
      const file = join(served.folder, "eventlog.prom");
      const args = ["--prometheus", file, "--cursor", `view=${cursor}`];
      const metrics = () => {
        assert.deepEqual(probe(served, ...args), [0, ""]);
        const lines = readFileSync(file, "utf8").trimEnd().split("\n");
        const values = lines.filter((line) => !line.startsWith("#"));
        assert.equal(lines.length, 3 * values.length);
        return Object.fromEntries(values.map((line) => line.replace("eventlog_", "").split(" ")));
      };
      const { up, segments, frontier_age_seconds, ...others } = metrics();
      assert.deepEqual([up, segments], ["1", "0"]);
      assert.match(frontier_age_seconds, /^\d+$/);
      assert.equal(others['consumer_lag_seconds{consumer="view"}'], "0");
      const beyond = 'consumer_beyond_log{consumer="view"}';
      assert.equal(others[beyond], "0");
      assert.equal(others.tail_bytes, `${statSync(join(served.logDir, "tail.ndjson")).size}`);
      assert.ok(Number(others.free_bytes) > 0);
      await writeFile(cursor, "ffffffff-a800-7001-8203-040506070809");
      assert.equal(metrics()[beyond], "1");
      await served.stop("SIGKILL");
      assert.equal(metrics().up, "0");
    }),
);

test(
  "backup.sh adds a copy of a running service's deployment, and keeps the last seven",
  needs("bash"),
  () =>
    withServing(async (served) => {
      const program = join(served.folder, "eventlog");
      await writeCommand(program);
      const to = join(served.folder, "backups");
      for (const name of [1, 2, 3, 4, 5, 6, 7]) {
        const copy = join(to, copyName(name));
        mkdirSync(copy, { recursive: true });
        writeFileSync(join(copy, "service.toml"), "");
      }
      await served.append("1");
      const script = [exampleAt("ops/backup.sh"), served.dir, to];
      const { status, stdout } = await runBeside(["env", `PROGRAM=${program}`, ...script]);
      assert.equal(status, 0);
      assert.equal(JSON.parse(stdout).frontier, served.receipts[0]!.last_event_id);
      assert.equal(readdirSync(to).filter((name) => /^\d{4}-/.test(name)).length, 7);
      assert.ok(!existsSync(join(to, copyName(1))));
      assert.equal((await new Deployment(to, join(to, "latest")).verify()).events_checked, 1);
    }),
);

const copyName = (day: number) => `2026-01-0${day}T00-00-00Z`;

const UNITS = [
  ...["eventlog.service", "eventlog-verify.service", "eventlog-verify.timer"],
  ...["eventlog-restart.service", "eventlog-restart.timer"],
];

test("install.sh installs the program, its units, its manual page and its completions", () =>
  withFolder(async (folder) => {
    const program = join(folder, "built");
    await writeCommand(program);
    const root = join(folder, "root");
    const args = ["--destdir", root, "--prefix", "/opt/log", program];
    const { status, stderr } = run([exampleAt("ops/install.sh"), ...args]);
    assert.deepEqual([status, stderr], [0, ""]);
    const read = (path: string) => readFileSync(join(root, path), "utf8");
    const share = "/opt/log/share";
    assert.match(read(`${share}/man/man1/eventlog.1`), /^\.TH /m);
    assert.match(read(`${share}/bash-completion/completions/eventlog`), /^complete /m);
    assert.match(read(`${share}/zsh/site-functions/_eventlog`), /^#compdef /);
    assert.match(read(`${share}/fish/vendor_completions.d/eventlog.fish`), /^complete /m);
    for (const unit of UNITS.slice(0, 2)) {
      assert.match(read(`/etc/systemd/system/${unit}`), /^ExecStart=\/opt\/log\/bin\/eventlog --/m);
    }
    const { stdout } = run([join(root, "opt/log/bin/eventlog"), "--version"]);
    assert.match(stdout, /^\d+\.\d+\.\d+/);
    assert.equal(run([exampleAt("ops/install.sh"), "--destdir", root, folder + "/no"]).status, 2);
  }));

test("the weekly verification unit runs verify --chain", (context) =>
  withDeployment(async (deployment) => {
    const unit = readFileSync(exampleAt("ops/eventlog-verify.service"), "utf8");
    const [, line] = /^ExecStart=\/usr\/local\/bin\/eventlog (.*)$/m.exec(unit)!;
    const words = line!.split(" ").map((word) =>
      word === "/srv/log/service.toml" ? deployment.configPath : word
    );
    const options = { config: deployment.configPath, chain: "" };
    assert.deepEqual(parseArguments(words), { command: "verify", dir: undefined, options });
    const folder = join(deployment.folder, "units");
    await mkdir(folder);
    for (const name of UNITS) {
      const text = readFileSync(exampleAt(`ops/${name}`), "utf8");
      await writeFile(join(folder, name), text.replace("/usr/local/bin/eventlog", "/bin/true"));
    }
    const paths = UNITS.slice(1).map((name) => join(folder, name));
    const { error, status, stderr } = run(["systemd-analyze", "verify", "--man=no", ...paths]);
    if (error !== undefined) return context.skip("systemd-analyze is not installed");
    assert.equal(stderr.split("\n").filter((line) => line.includes(folder)).join("\n"), "");
    assert.equal(status, 0, stderr);
  }));
