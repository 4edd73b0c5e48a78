/** Tests reading commits from generated repositories and converting them to events. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { join } from "node:path";
import { test } from "node:test";
import { toCommitEvent } from "../support/commit_event.ts";
import {
  type Commit,
  COMMIT_FIELD_BYTES_MAX,
  presentCommits,
  readCommits,
  resolveCommit,
} from "../support/git_commits.ts";
import { nulFields } from "../support/nul_fields.ts";
import { withFolder } from "../../tools/support/program.ts";
import { GitRepository } from "./support/git_repository.ts";

const withRepository = (use: (repository: GitRepository) => Promise<void>) =>
  withFolder((folder) => use(new GitRepository(join(folder, "r.git"))));

async function readOne(repository: GitRepository, object: string | Uint8Array): Promise<Commit> {
  const hash = repository.commitRaw(object);
  const [commit] = await Array.fromAsync(readCommits(repository.path, hash, []));
  assert.equal(commit?.hash, hash);
  return commit;
}

/** Encodes a commit object as Latin-1, so that a test can include any byte. */
function commitObject(author: string, message: string, header = ""): Uint8Array {
  const committer = "committer C <c@example.invalid> 1700000001 +0000";
  const tree = "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904";
  return Buffer.from(`${tree}\nauthor ${author}\n${committer}\n${header}\n${message}`, "latin1");
}

test("readCommits() reads messages that are not UTF-8, and converts encodings", async () => {
  await withRepository(async (repository) => {
    const author = "A <a@example.invalid> 1 +0000";
    const raw = await readOne(repository, commitObject(author, "caf\xe9 \xff\n\nx\x1b[0m\r\ny\n"));
    assert.equal(raw.subject, "caf\u{fffd} \u{fffd}");
    assert.equal(raw.body, "x\x1b[0m\r\ny");
    const latin1 = commitObject(author, "caf\xe9\n", "encoding ISO-8859-1\n");
    assert.equal((await readOne(repository, latin1)).subject, "caf\u{e9}");
    const empty = await readOne(repository, commitObject(author, ""));
    assert.deepEqual([empty.subject, empty.body, empty.isCut], ["", "", false]);
  });
});

test("readCommits() truncates an overlong message and flags it", async () => {
  await withRepository(async (repository) => {
    const long = commitObject("A <a> 1 +0000", `s\n\n${"x".repeat(COMMIT_FIELD_BYTES_MAX + 1)}`);
    const commit = await readOne(repository, long);
    assert.equal(commit.subject, "s");
    assert.equal(commit.body.length, COMMIT_FIELD_BYTES_MAX);
    assert(commit.isCut);
    assert(toCommitEvent(commit).payload.is_cut);
  });
});

test("readCommits() and resolveCommit() fail with git's error message", async () => {
  await withRepository(async (repository) => {
    await assert.rejects(resolveCommit(repository.path, "HEAD"), /git rev-parse failed/);
    await assert.rejects(resolveCommit(repository.path, "--all"), /git rev-parse failed/);
    await assert.rejects(resolveCommit("/nonexistent", "HEAD"), /nonexistent/);
    await assert.rejects(
      Array.fromAsync(readCommits(repository.path, "0".repeat(40), [])),
      /git log failed.*bad object/,
    );
  });
});

test("presentCommits() keeps the commits that exist, in order", async () => {
  await withRepository(async (repository) => {
    const first = repository.commit([]);
    const second = repository.commit([first]);
    const tree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
    const asked = [second, "f".repeat(40), tree, first];
    assert.deepEqual(await presentCommits(repository.path, asked), [second, first]);
    assert.deepEqual(await presentCommits(repository.path, []), []);
  });
});

const AUTHORS: [string, string, string | undefined, string | undefined][] = [
  ["A B <a@example.invalid> 1700000000 +0530", "A B", "a@example.invalid", "2023-11-14T22:13:20Z"],
  ["A <a@example.invalid> 0 +0000", "A", "a@example.invalid", "1970-01-01T00:00:00Z"],
  ["A <> 253402300799 +0000", "A", undefined, "9999-12-31T23:59:59Z"],
  ["A <> 253402300800 +0000", "A", undefined, undefined],
  ["A <>", "A", undefined, undefined],
];
test("toCommitEvent() uses the valid parts of a malformed author line", async () => {
  await withRepository(async (repository) => {
    for (const [line, name, mail, occurredAt] of AUTHORS) {
      const event = toCommitEvent(await readOne(repository, commitObject(line, "s\n")));
      assert.equal(event.occurred_at, occurredAt, line);
      assert.deepEqual(event.payload.author, { name, ...(mail === undefined ? {} : { mail }) });
    }
  });
});

test("nulFields() returns the same fields regardless of how its input is split", async () => {
  const bytes = new TextEncoder().encode("\u{feff}ab\0\0äöü\u{1f600}\0longer\0rest without end");
  for (let size = 1; size <= bytes.length; size++) {
    const chunks = async function* () {
      for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
    };
    assert.deepEqual(await Array.fromAsync(nulFields(chunks(), 10)), [
      { text: "\u{feff}ab", isCut: false },
      { text: "", isCut: false },
      { text: "äöü\u{1f600}", isCut: false },
      { text: "longer", isCut: false },
    ]);
    const cut = (await Array.fromAsync(nulFields(chunks(), 5))).map(({ isCut }) => isCut);
    assert.deepEqual(cut, [false, false, true, true]);
  }
});
