/**
 * Streams commits from a git repository, so that memory use is bounded for any history.
 *
 * The order is topological, parents before children. It is deterministic for a given tip and
 * exclusions, so a list of commits can be rebuilt later. It may differ for a different tip, since
 * a merge may insert new commits between old ones.
 */
import { Buffer } from "node:buffer";
import { spawn } from "node:child_process";
import type { Readable } from "node:stream";
import { nulFields } from "./nul_fields.ts";

/** A commit as stored in the repository. Commits are immutable. */
export interface Commit {
  hash: string;
  parents: string[];
  authorName: string;
  authorMail: string;
  /** Unix seconds as printed by git; empty if the date is invalid. */
  authorSeconds: string;
  committerSeconds: string;
  subject: string;
  body: string;
  /** Whether a string was truncated. */
  isCut: boolean;
}

/** Maximum field size; longer fields are truncated. */
export const COMMIT_FIELD_BYTES_MAX = 256 * 1024;

/** Commit fields in order, each terminated by NUL, which no field can contain. */
const FORMAT = ["%H", "%P", "%an", "%ae", "%at", "%ct", "%s", "%b"].join("%x00") + "%x00";
const FIELDS = 8;

/**
 * Full hash of the commit that a name such as `HEAD` or `main` refers to.
 * @throws {Error} if the commit or the repository does not exist.
 */
export async function resolveCommit(
  repository: string,
  name: string,
): Promise<string> {
  const revision = ["--verify", "--end-of-options", `${name}^{commit}`];
  return (await readAll(git(repository, ["rev-parse", ...revision]))).trim();
}

/** Returns the hashes that exist as commits in the repository, in the given order. */
export async function presentCommits(
  repository: string,
  hashes: string[],
): Promise<string[]> {
  const check = git(repository, [
    "cat-file",
    "--batch-check=%(objectname) %(objecttype)",
  ], hashes);
  const lines = (await readAll(check)).split("\n");
  return hashes.filter((hash, index) => lines[index] === `${hash} commit`);
}

/**
 * Yields commits reachable from `tip` but not from `excluded`, parents first.
 * @throws {Error} if git fails; includes git's error message.
 */
export async function* readCommits(
  repository: string,
  tip: string,
  excluded: string[],
): AsyncGenerator<Commit> {
  const output = git(repository, [
    "log",
    "--stdin",
    "--reverse",
    "--topo-order",
    "--encoding=UTF-8",
    "--no-show-signature",
    "--no-patch",
    "--no-color",
    `--format=tformat:${FORMAT}`,
  ], [tip, ...excluded.map((hash) => `^${hash}`)]);
  let fields: string[] = [];
  let isCut = false;
  for await (const field of nulFields(output, COMMIT_FIELD_BYTES_MAX)) {
    // git ends each commit with LF, which therefore precedes the next hash.
    fields.push(fields.length === 0 ? field.text.trimStart() : field.text);
    isCut ||= field.isCut;
    if (fields.length < FIELDS) continue;
    yield toCommit(fields, isCut);
    fields = [];
    isCut = false;
  }
}

function toCommit(fields: string[], isCut: boolean): Commit {
  const [
    hash,
    parents,
    authorName,
    authorMail,
    authorSeconds,
    committerSeconds,
    subject,
    body,
  ] = fields as [
    string,
    string,
    string,
    string,
    string,
    string,
    string,
    string,
  ];
  return {
    hash,
    parents: parents === "" ? [] : parents.split(" "),
    authorName,
    authorMail,
    authorSeconds,
    committerSeconds,
    subject,
    body: body.trimEnd(),
    isCut,
  };
}

/** Yields the output from a git command, and throws at the end if git failed. */
async function* git(
  repository: string,
  args: string[],
  inputLines: string[] = [],
): AsyncGenerator<Uint8Array> {
  // Replacement objects would substitute different commits under the same hashes.
  const child = spawn("git", [
    "--no-replace-objects",
    "-C",
    repository,
    ...args,
  ], {
    stdio: ["pipe", "pipe", "pipe"],
  });
  const exit = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  // `exit` is awaited below. Without a handler, an earlier rejection would go unhandled.
  exit.catch(() => {});
  const complaint = readStart(child.stderr, 4096);
  // If git exits early, writes to its input fail. The exit status is checked below.
  child.stdin.on("error", () => {});
  child.stdin.end(inputLines.map((line) => `${line}\n`).join(""));
  try {
    yield* child.stdout;
    const code = await exit;
    if (code !== 0) {
      throw new Error(
        `git ${args[0]} failed in ${repository}: ${(await complaint).trim()}`,
      );
    }
  } finally {
    child.kill();
  }
}

async function readAll(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = [];
  for await (const chunk of chunks) pieces.push(chunk);
  return Buffer.concat(pieces).toString("utf8");
}

/** Reads to the end, but keeps only the first `keptCharsMax` characters. */
async function readStart(
  stream: Readable,
  keptCharsMax: number,
): Promise<string> {
  let kept = "";
  for await (const chunk of stream) {
    if (kept.length < keptCharsMax) kept += String(chunk);
  }
  return kept.slice(0, keptCharsMax);
}
