/** Runs programs under an older runtime, or so they are told. */
import type { CliOptions } from "../../tools/support/program.ts";
import { type RuntimeName, THIS_RUNTIME } from "../../tools/support/runtimes.ts";

/** Pretends to be an older runtime. */
export function olderFlags(name: RuntimeName, version: string): CliOptions {
  const versions = `{ value: { ...process.versions, ${name}: '${version}' } }`;
  const script = "import process from 'node:process';" +
    `Object.defineProperty(process, 'versions', ${versions});`;
  const url = `data:text/javascript,${encodeURIComponent(script)}`;
  return name === "node"
    ? { runtime: "node", nodeFlags: ["--import", url] }
    : { runtime: "deno", denoFlags: [`--preload=${url}`] };
}

/** Makes a program take the test's runtime for an older one. */
export const OLDER: CliOptions = olderFlags(THIS_RUNTIME, "2.8.9");

/** How it then says which runtime it needs. */
export const NEEDED: RegExp = /this program needs \w+ [\d.]+ or later; this is \w+ 2\.8\.9\n$/;
