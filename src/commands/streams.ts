/** `streams` prints a summary of each stream. */
import type { Options } from "./arguments.ts";
import type { Config } from "./config.ts";
import { print, runAsClient } from "./service_client.ts";
import type { Terminal } from "./terminal.ts";

export async function streams(
  config: Config,
  { source }: Options,
  terminal: Terminal,
): Promise<void> {
  await runAsClient(config, terminal, async (client) => {
    for await (const page of client.streamsPages({ source, signal: terminal.stop })) {
      await print(page.streams.map((row) => `${JSON.stringify(row)}\n`).join(""));
    }
  });
}
