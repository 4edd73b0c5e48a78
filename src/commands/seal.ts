/** `seal`: moves the append tail into immutable Parquet segments. */
import { requireSupported, unsupported } from "./capability.ts";
import type { Config } from "./config.ts";

/** @throws {CommandError} exit status 4: sealing is not part of this build yet. */
export function seal(config: Config): never {
  requireSupported(config, "seal");
  throw unsupported(
    "seal: is not there yet; the log keeps growing in its tail, and stays complete",
  );
}
