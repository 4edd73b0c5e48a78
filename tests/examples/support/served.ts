/** A served deployment for the examples to talk to. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { type CommittedEvent, EventLogClient, type SubmittedEvent } from "../../../mod.ts";
import { runCli, type Serving, startServe, withFolder } from "../../../tools/support/program.ts";

export interface Served {
  /** The test's own folder; the deployment is in `deployment` there. */
  folder: string;
  socketPath: string;
  serving: Serving;
  /** Serves again, after a stop or a kill. */
  restart(): Promise<void>;
}

export async function withServed(use: (served: Served) => Promise<void>): Promise<void> {
  await withFolder(async (folder) => {
    const deployment = join(folder, "deployment");
    const init = await runCli(["init", deployment]);
    assert.equal(init.code, 0, init.stderr);
    const served: Served = {
      folder,
      socketPath: join(deployment, "data", "ground.sock"),
      serving: await startServe(deployment),
      async restart() {
        served.serving = await startServe(deployment);
      },
    };
    try {
      await use(served);
    } finally {
      const { child } = served.serving;
      const isRunning = child.exitCode === null && child.signalCode === null;
      if (isRunning) await served.serving.stop("SIGKILL");
    }
  });
}

/** Appends events of source `test` under a batch id. */
export async function append(
  { serving }: Served,
  batchId: string,
  events: SubmittedEvent[],
): Promise<void> {
  await new EventLogClient(serving.fetch).append({ source: "test", batchId, events });
}

/** All events of a small log. */
export async function readLog({ serving }: Served): Promise<CommittedEvent[]> {
  const events: CommittedEvent[] = [];
  for await (const event of new EventLogClient(serving.fetch).replay()) events.push(event);
  return events;
}
