/** `verify`: read-only analysis of one coherent log inventory. */
import { requireSupported, unsupported } from "./capability.ts";
import type { Config } from "./config.ts";

/** @throws {CommandError} exit status 4: verification is not part of this build yet. */
export function verify(config: Config, isChainWanted: boolean): never {
  if (isChainWanted) requireSupported(config, "verify --chain");
  throw unsupported("verify: is not there yet; serve checks the framing of the log when it starts");
}
