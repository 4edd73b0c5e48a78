/**
 * Builds `examples/ops/Containerfile` with buildah and runs the image. The base image consists of
 * programs installed on this machine, so nothing is downloaded. The service runs from its sources
 * under Node.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { chownSync, cpSync, mkdirSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { EventLogClient, unixFetch } from "../../mod.ts";
import { findProgram } from "../../tools/support/find_program.ts";
import { withFolder } from "../../tools/support/program.ts";
import { absenceOf, executableOf } from "../../tools/support/runtimes.ts";
import { exampleAt, needs, run } from "./support/programs.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const NODE = executableOf("node");
const NEEDS_BUILDAH = NODE === null ? { skip: absenceOf("node") } : needs("buildah", "flock");
const POLL_MS = 20;
/** The user in the image. */
const USER = 10001;
/** Programs that the build and the service run. */
const PROGRAMS = ["install", "flock"];
const SOURCES = [
  "cli.ts",
  "package.json",
  "src",
  ...["hyparquet", "hyparquet-writer", "smol-toml"].map((name) => `node_modules/${name}`),
];

/** Copies programs and sources into the build context of the base image. */
function makeBase(folder: string): void {
  const base = join(folder, "base");
  mkdirSync(join(base, "tmp"), { recursive: true });
  for (const path of SOURCES) {
    cpSync(join(ROOT, path), join(base, "app", path), { recursive: true, dereference: true });
  }
  cpSync(NODE!, join(base, "node"), { dereference: true });
  const programs = ["/bin/sh", ...PROGRAMS.map((name) => findProgram(name)!)];
  const libraries = run(["ldd", NODE!, ...programs]).stdout.match(/\/\S+\.so\S*/g)!;
  const copied = run(["cp", "--parents", "-L", ...programs, ...new Set(libraries), base]);
  assert.equal(copied.status, 0, copied.stderr);
}

test(
  "the Containerfile builds an image that serves a volume as a different user",
  NEEDS_BUILDAH,
  (context) =>
    withFolder(async (folder) => {
      const places = ["--root", join(folder, "images"), "--runroot", join(folder, "run")];
      const buildah = ["buildah", "--storage-driver", "vfs", ...places];
      const build = [...buildah, "bud", "--isolation", "chroot"];
      makeBase(folder);
      await writeFile(join(folder, "Base"), "FROM scratch\nCOPY base /\nRUN true\n");
      const made = run([...build, "-f", join(folder, "Base"), "-t", "base", folder]);
      if (made.status !== 0) return context.skip(`buildah does not work here: ${made.stderr}`);
      const program = join(folder, "dist", "eventlog");
      mkdirSync(join(folder, "dist"));
      await writeFile(program, '#!/bin/sh\nexec /node /app/cli.ts "$@"\n', { mode: 0o755 });
      const file = ["--build-arg", "BASE=localhost/base", "-f", exampleAt("ops/Containerfile")];
      const built = run([...build, ...file, "-t", "eventlog", join(folder, "dist")]);
      assert.equal(built.status, 0, built.stderr);

      const inspected = run([...buildah, "inspect", "--type", "image", "localhost/eventlog"]);
      const { User, Entrypoint, Cmd, StopSignal } = JSON.parse(inspected.stdout).OCIv1.config;
      assert.deepEqual([User, StopSignal], ["10001:10001", "SIGTERM"]);
      const volume = join(folder, "log");
      mkdirSync(volume);
      chownSync(volume, USER, USER);
      const container = run([...buildah, "from", "localhost/eventlog"]).stdout.trim();
      const inside = (words: string[]) => {
        const mounted = ["-v", `${volume}:/srv/log`, container, ...Entrypoint, ...words];
        return [...buildah, "run", "--isolation", "chroot", ...mounted];
      };

      const initialized = run(inside(["init", "/srv/log"]));
      assert.equal(initialized.status, 0, initialized.stderr);
      const [name, ...args] = inside(Cmd);
      const serving = spawn(name!, args, { stdio: "ignore" });
      const exited = new Promise((resolve) => serving.once("exit", resolve));
      try {
        const fetch = unixFetch(join(volume, "data", "ground.sock"));
        while (serving.exitCode === null) {
          if (await fetch("/v1/streams").then(({ ok }) => ok, () => false)) break;
          await new Promise((resolve) => setTimeout(resolve, POLL_MS));
        }
        const events = [{ stream: "s", record_key: "1", kind: "upserted", payload: 1 }];
        await new EventLogClient(fetch).append({ source: "test", batchId: "1", events });
      } finally {
        serving.kill();
        await exited;
      }
      const verified = run(inside(["--config", "/srv/log/service.toml", "verify", "--chain"]));
      assert.equal(JSON.parse(verified.stdout).events_checked, 1, verified.stderr);
    }),
);
