/**
 * A connector: imports the history of a git repository into the log, one event per commit.
 *
 *     node examples/git_history.ts --socket demo/data/ground.sock --repo .
 *     deno task example:git_history demo/data/ground.sock .
 *
 * Events have source `git`, stream `commits` and the commit's hash as record key. Parents precede
 * children. This program and the service may be killed at any time. The next run completes the
 * import, because the service ignores batches that are already in the log. Run the program again to
 * import new commits.
 */
import process from "node:process";
import { parseArgs } from "node:util";
import { EventLogClient, unixFetch } from "../mod.ts";
import { commitBatches } from "./support/commit_batches.ts";
import { COMMIT_STREAM } from "./support/commit_event.ts";
import { presentCommits, readCommits, resolveCommit } from "./support/git_commits.ts";
import { readCommitsOfTips, readImported } from "./support/imported.ts";
import { refuseRest, runExample, UsageError } from "./support/run_example.ts";
import { parseWait, reportRetry, WAIT_OPTION, WAIT_USAGE } from "./support/socket_wait.ts";
import { readToken } from "./support/token_file.ts";
import { withoutUndefined } from "./support/without_undefined.ts";

const USAGE = `usage: git_history --socket SOCKET --repo REPO [OPTION...]
       git_history SOCKET REPO

  --socket SOCKET  socket of the service
  --repo REPO      git repository, bare or not
  --ref NAME       branch, tag or commit to import (default: HEAD)
  ${WAIT_USAGE}
  --token-file FILE  file with the bearer token, if the service requires one`;

interface Options {
  socket: string;
  repository: string;
  ref: string;
  socketWaitMs: number;
  token: string | undefined;
}

function parseOptions(args: string[]): Options {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      socket: { type: "string" },
      repo: { type: "string" },
      ref: { type: "string", default: "HEAD" },
      wait: WAIT_OPTION,
      "token-file": { type: "string" },
    },
  });
  const rest = [...positionals];
  const socket = values.socket ?? rest.shift();
  const repository = values.repo ?? rest.shift();
  if (socket === undefined || repository === undefined) {
    throw new UsageError("a socket and a repository are required");
  }
  refuseRest(rest);
  const { ref } = values;
  const token = readToken(values["token-file"]);
  return { socket, repository, ref, socketWaitMs: parseWait(values.wait), token };
}

/** A git revision range: commits reachable from `tip` but not from `excluded`. */
interface Import {
  tip: string;
  excluded: string[];
}

/** Yields the earlier imports in order, then a new one if the tip is new. */
async function* planImports(
  client: EventLogClient,
  repository: string,
  tips: string[],
): AsyncGenerator<Import> {
  const present = new Set(await presentCommits(repository, tips));
  const lostTips = new Set(tips.filter((tip) => !present.has(tip)));
  const lost = await readCommitsOfTips(client, lostTips);
  let excluded: string[] = [];
  for (const tip of tips) {
    if (present.has(tip)) {
      yield { tip, excluded };
      excluded = [...excluded, tip];
    } else {
      // Git cannot exclude a tip that is gone. Exclude those of its commits that still exist.
      excluded = excluded.concat(await presentCommits(repository, lost.get(tip) ?? []));
    }
  }
}

async function importHistory(options: Options): Promise<void> {
  const { socket, repository, ref, socketWaitMs, token } = options;
  const client = new EventLogClient(
    unixFetch(socket),
    withoutUndefined({ token, socketWaitMs, onRetry: reportRetry }),
  );
  const newTip = await resolveCommit(repository, ref);
  const imported = await readImported(client);
  const tips = [...new Set([...imported.tips, newTip])];
  const counts = { committed: 0, duplicate: 0 };
  let frontier = imported.frontier;
  for await (const { tip, excluded } of planImports(client, repository, tips)) {
    for await (const batch of commitBatches(tip, readCommits(repository, tip, excluded))) {
      // If two imports run concurrently, one of them fails here.
      const precondition = { stream: COMMIT_STREAM, expectedFrontier: frontier };
      const receipt = await client.append({ ...batch, precondition });
      counts[receipt.status] += receipt.events;
      // Ids sort chronologically. If a response was lost, the newest batch can be a duplicate.
      if (frontier === null || receipt.last_event_id > frontier) frontier = receipt.last_event_id;
    }
  }
  process.stdout.write(`${counts.committed} committed, ${counts.duplicate} duplicate\n`);
}

await runExample(USAGE, () => importHistory(parseOptions(process.argv.slice(2))));
