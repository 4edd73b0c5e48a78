/** `streams` prints a summary of each stream. */
import { streamsPages } from "../client/replay.ts";
import type { Options } from "./arguments.ts";
import type { Config } from "./config.ts";
import { runAsClient } from "./service_client.ts";
import type { Terminal } from "./terminal.ts";

export async function streams(
  config: Config,
  { source }: Options,
  { report }: Terminal,
): Promise<void> {
  await runAsClient(config, report, async ({ transport, signal, print }) => {
    for await (const page of streamsPages(transport, { source, signal })) {
      await print(page.streams.map((row) => `${JSON.stringify(row)}\n`).join(""));
    }
  });
}
