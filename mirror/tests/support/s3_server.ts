/** A real S3-compatible store: `versitygw`, a Go program that serves a directory. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import { findProgram } from "../../../tools/support/find_program.ts";
import { freePort } from "../../../tools/support/free_port.ts";
import { pause } from "./nats_stream.ts";

const PROGRAM = process.env.MIRROR_TEST_VERSITYGW ?? findProgram("versitygw");

/** Options for a test that needs `versitygw`. */
export const NEEDS_S3 = {
  skip: PROGRAM === null
    ? "versitygw is not installed: go build it in .ci/tools, and set MIRROR_TEST_VERSITYGW"
    : false,
};

const CREDENTIALS = { AWS_ACCESS_KEY_ID: "tester", AWS_SECRET_ACCESS_KEY: "not-a-secret" };
const BUCKET = "logs";

/**
 * Runs `use` with a store, configured through the environment of this process and its children.
 * @param folder An existing directory for the store's files.
 * @param use Receives the URL of a prefix, and the directory that holds its objects.
 */
export async function withS3(
  folder: string,
  use: (url: string, objects: string) => Promise<void>,
): Promise<void> {
  const objects = join(folder, "objects");
  await mkdir(join(objects, BUCKET), { recursive: true });
  await mkdir(join(folder, "metadata"));
  const address = `127.0.0.1:${await freePort()}`;
  const args = ["--port", address, "--access", "tester", "--secret", "not-a-secret", "posix"];
  args.push("--sidecar", join(folder, "metadata"), objects);
  const child = spawn(PROGRAM!, args, { stdio: "ignore" });
  await once(child, "spawn");
  const exited = new Promise((resolve) => child.once("exit", resolve));
  const environment = { ...CREDENTIALS, AWS_ENDPOINT_URL: `http://${address}` };
  Object.assign(process.env, environment);
  try {
    const ended = exited.then(() => Promise.reject(new Error("versitygw exited")));
    await Promise.race([untilAnswers(environment.AWS_ENDPOINT_URL), ended]);
    ended.catch(() => {});
    await use(`s3://${BUCKET}/ground`, join(objects, BUCKET, "ground"));
  } finally {
    for (const name of Object.keys(environment)) delete process.env[name];
    child.kill("SIGTERM");
    await exited;
  }
}

async function untilAnswers(url: string): Promise<void> {
  for (;;) {
    try {
      await (await fetch(url)).text();
      return;
    } catch {
      await pause();
    }
  }
}
