/** Makes programs take the runtime for an older one. */
import { type CliOptions, preloading } from "../../tools/support/program.ts";
import { type RuntimeName, THIS_RUNTIME } from "../../tools/support/runtimes.ts";

/** Pretends to be an older runtime. */
export function olderFlags(runtime: RuntimeName, version: string): CliOptions {
  const versions = `{ value: { ...process.versions, ${runtime}: '${version}' } }`;
  const script = "import process from 'node:process';" +
    `Object.defineProperty(process, 'versions', ${versions});`;
  return { runtime, ...preloading(script) };
}

/** Pretends that the test's runtime is an older one. */
export const OLDER: CliOptions = olderFlags(THIS_RUNTIME, "2.8.9");

/** How it then says which runtime it needs. */
export const NEEDED: RegExp = /this program needs \w+ [\d.]+ or later; this is \w+ 2\.8\.9\n$/;
