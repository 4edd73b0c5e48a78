/** Runs the mirror between a running service and a real `nats-server`. */
import assert from "node:assert/strict";
import process from "node:process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { EventLogClient, type Receipt } from "../../../mod.ts";
import { Deployment, withServing } from "../../../tests/support/deployment.ts";
import {
  type CliExit,
  type CliOptions,
  describeExit,
  signalChild,
  spawnCommand,
  type Spawned,
  spawnScript,
} from "../../../tools/support/program.ts";
import { type NatsServer, NEEDS_NATS, withNats } from "./nats_server.ts";

/** A program to test instead of the source, such as a compiled executable. */
const EXECUTABLE = process.env.MIRROR_TEST_EXECUTABLE;
const CLI = fileURLToPath(new URL("../../cli.ts", import.meta.url));

/** As in the `mirror` task. */
const V8_FLAGS = "--v8-flags=--heap-growing-percent=50,--max-semi-space-size=8";

/** Time limit for each child. The cluster test can take minutes. */
export const MIRROR_TIMEOUT_MS = 600_000;

export interface Mirrored {
  served: Deployment;
  nats: NatsServer;
}

interface NatsTestOptions {
  /** Additional lines for the NATS configuration. */
  config?: string;
  /** Why the test is skipped even if NATS is available. */
  skip?: string | boolean;
}

/** Defines a test with a service and NATS. */
export function testWithNats(
  name: string,
  use: (mirrored: Mirrored) => Promise<void>,
  { config = "", skip = false }: NatsTestOptions = {},
): void {
  test(name, { skip: NEEDS_NATS.skip || skip }, async () => {
    await withServing((served) => withNats((nats) => use({ served, nats }), config));
  });
}

/** Starts a mirror command. */
export function startMirror(
  args: string[],
  permissions = ["--allow-all"],
  timeoutMs = MIRROR_TIMEOUT_MS,
  { denoFlags = [], ...more }: CliOptions = {},
): Spawned {
  const options = { ...more, timeoutMs };
  if (EXECUTABLE !== undefined) return spawnCommand([EXECUTABLE, ...args], options);
  return spawnScript(CLI, args, { ...options, permissions, denoFlags: [V8_FLAGS, ...denoFlags] });
}

/** Runs a mirror command that must succeed. */
export async function runMirror(args: string[]): Promise<CliExit> {
  const exit = await startMirror(args).exited;
  assert.equal(exit.code, 0, describeExit(exit));
  return exit;
}

/** Runs a mirror command that must fail. @returns its standard error. */
export async function refusalOf(args: string[]): Promise<string> {
  const { code, stderr } = await startMirror(args).exited;
  assert.equal(code, 1, stderr);
  return stderr;
}

/**
 * Starts a pusher with permissions only for the service's socket and NATS.
 * @param url If empty, the pusher uses NATS_URL.
 */
export function startPush({ served, nats }: Mirrored, url = nats.url, more: string[] = []) {
  const { socketPath } = served;
  const from = url === "" ? [] : ["--nats", url];
  return startMirror(["push", "--socket", socketPath, ...from, ...more], [
    `--allow-net=${new URL(nats.url).host},unix:${socketPath}`,
    `--allow-read=${socketPath}`,
    `--allow-write=${socketPath}`,
    "--allow-env=NATS_URL",
  ]);
}

/** Pushes all events that the log contains now. */
export async function pushAll({ served, nats }: Mirrored): Promise<void> {
  await runMirror(["push", "--socket", served.socketPath, "--nats", nats.url, "--once"]);
}

/** Returns the last chain head in a command's standard error. */
export function headIn(stderr: string): string {
  return stderr.match(/(?<=head )[0-9a-f]{64}/g)!.at(-1)!;
}

/** Signals a process and waits for it to exit. @returns its exit code. */
export async function end(
  { child, exited }: Spawned,
  signal: "SIGTERM" | "SIGINT" | "SIGKILL",
): Promise<number | null> {
  signalChild(child, signal);
  return (await exited).code;
}

interface AppendOptions {
  source?: string;
  stream?: string;
  attemptsMax?: number;
}

/** Appends a batch with one event per payload. */
export function appendPayloads(
  { served }: Pick<Mirrored, "served">,
  batchId: string,
  payloads: unknown[],
  { source = "shop", stream = "orders", ...means }: AppendOptions = {},
): Promise<Receipt> {
  const events = payloads.map((payload, index) => ({
    stream,
    record_key: `${batchId}/${index}`,
    kind: "upserted",
    payload,
  }));
  return new EventLogClient(served.serving.fetch, means).append({ source, batchId, events });
}

/** Runs `use` with the deployment that `restore` or `standby` created in `dir`. */
export async function withRestored<T>(
  folder: string,
  dir: string,
  use: (restored: Deployment) => Promise<T>,
): Promise<T> {
  const restored = new Deployment(folder, dir);
  try {
    return await use(restored);
  } finally {
    await restored.dispose();
  }
}
