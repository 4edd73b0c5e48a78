/** `git_history` against a served deployment: each commit is imported once, despite failures. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { EventLogClient } from "../../mod.ts";
import { commitBatches } from "../support/commit_batches.ts";
import { readCommits } from "../support/git_commits.ts";
import { GitRepository } from "./support/git_repository.ts";
import { runExample, startExample } from "./support/run_script.ts";
import { readLog } from "./support/served.ts";
import { type Deployment, withServing } from "../../tests/support/deployment.ts";

async function withImport(
  use: (served: Deployment, repository: GitRepository) => Promise<void>,
): Promise<void> {
  await withServing((served) => use(served, new GitRepository(join(served.folder, "repository"))));
}

function importArgs({ socketPath }: Deployment, { path }: GitRepository): string[] {
  return ["--socket", socketPath, "--repo", path];
}

/** Imports a repository and returns the summary line. */
async function importAll(served: Deployment, repository: GitRepository): Promise<string> {
  const { code, stdout, stderr } = await runExample("git_history", importArgs(served, repository));
  assert.deepEqual([code, stderr], [0, ""]);
  return stdout.trim();
}

async function importedHashes(served: Deployment): Promise<string[]> {
  return (await readLog(served)).map((event) => event.record_key);
}

test("git_history imports every commit once in git's order, and a second run sends only duplicates", async () => {
  await withImport(async (served, repository) => {
    const tip = repository.grow(null, 1203);
    repository.setBranch("main", tip);
    assert.equal(await importAll(served, repository), "1203 committed, 0 duplicate");
    assert.deepEqual(await importedHashes(served), repository.list(tip));
    assert.equal(await importAll(served, repository), "0 committed, 1203 duplicate");

    const { source, stream, kind, payload } = (await readLog(served))[0]!;
    assert.deepEqual([source, stream, kind], ["git", "commits", "upserted"]);
    assert.deepEqual(payload, {
      subject: "commit 1700000000",
      author: { name: "Ada", mail: "ada@example.invalid" },
      parents: [],
      committed_at: "2023-11-14T22:13:20Z",
    });
  });
});

test("git_history imports only new commits when the repository has grown", async () => {
  await withImport(async (served, repository) => {
    const first = repository.grow(null, 620);
    repository.setBranch("main", first);
    assert.equal(await importAll(served, repository), "620 committed, 0 duplicate");

    // A merge whose first parent is the other branch makes git list new commits between old ones.
    const root = repository.list(first)[0]!;
    const foreign = repository.grow(root, 30);
    const merge = repository.commit([foreign, first], "merged the wrong way round");
    repository.setBranch("main", merge);
    assert.equal(await importAll(served, repository), "31 committed, 620 duplicate");
    assert.deepEqual((await importedHashes(served)).sort(), repository.list(merge).sort());
    const { parents } = (await readLog(served)).at(-1)!.payload as { parents: string[] };
    assert.deepEqual(parents, [foreign, first]);
  });
});

test("git_history completes an interrupted import before it imports newer commits", async () => {
  await withImport(async (served, repository) => {
    const tip = repository.grow(null, 700);
    const firstBatch = (await commitBatches(tip, readCommits(repository.path, tip, [])).next())
      .value!;
    await new EventLogClient(served.serving.fetch).append(firstBatch);
    repository.setBranch("main", repository.grow(tip, 50));
    assert.equal(await importAll(served, repository), "250 committed, 500 duplicate");
    assert.deepEqual(await importedHashes(served), repository.list("main"));
  });
});

test("git_history continues when imported commits have disappeared from the repository", async () => {
  await withImport(async (served, repository) => {
    const base = repository.grow(null, 20);
    repository.setBranch("main", base);
    await importAll(served, repository);
    const kept = repository.grow(base, 5);
    const amended = repository.commit([kept], "wrong");
    repository.setBranch("main", amended);
    assert.equal(await importAll(served, repository), "6 committed, 20 duplicate");

    repository.setBranch("main", repository.commit([kept], "right"));
    assert.equal(await importAll(served, repository), "1 committed, 26 duplicate");
    repository.git(["update-ref", "-d", "refs/heads/grown"]);
    repository.git(["gc", "--quiet", "--prune=now"]);
    assert.equal(await importAll(served, repository), "0 committed, 21 duplicate");
    assert.equal((await importedHashes(served)).length, 27);
  });
});

test("git_history continues on its own when the service is killed and restarted", async () => {
  await withImport(async (served, repository) => {
    const tip = repository.grow(null, 3000);
    repository.setBranch("main", tip);
    const running = startExample("git_history", importArgs(served, repository));
    while ((await importedHashes(served)).length === 0) {
      // No delay is needed, because each poll takes a while.
    }
    await served.stop("SIGKILL");
    await served.start();
    assert.equal((await running.exited).code, 0, running.output.stderr);
    assert.match(running.output.stdout, /^\d+ committed, (0|500) duplicate\n$/);
    assert.equal(await importAll(served, repository), "0 committed, 3000 duplicate");
    assert.deepEqual(await importedHashes(served), repository.list(tip));
  });
});

test("git_history reports errors and exits 1 or 2", async () => {
  await withImport(async (served, repository) => {
    const noCommits = await runExample("git_history", importArgs(served, repository));
    assert.equal(noCommits.code, 1);
    assert.match(noCommits.stderr, /git rev-parse failed in .*repository/);
    assert.equal((await runExample("git_history", [served.socketPath])).code, 2);
    assert.equal((await runExample("git_history", ["--nothing"])).code, 2);
  });
});
