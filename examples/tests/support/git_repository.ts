/** A bare git repository for tests, with fixed dates and therefore deterministic hashes. */
import { Buffer } from "node:buffer";
import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";

/** The empty tree, which every commit refers to. */
const EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
const FIRST_SECOND = 1_700_000_000;

const GROWN_REF = "refs/heads/grown";

/** Formats a `git fast-import` command that creates a commit and assigns it `mark`. */
function commitCommand(mark: number, parents: string[], second: number): string {
  const [from, merge] = parents;
  return [
    `commit ${GROWN_REF}`,
    `mark :${mark}`,
    `committer Ada <ada@example.invalid> ${second} +0200`,
    `data <<END\ncommit ${second}\nEND`,
    ...(from === undefined ? [] : [`from ${from}`]),
    ...(merge === undefined ? [] : [`merge ${merge}`]),
    "",
    "",
  ].join("\n");
}

export class GitRepository {
  readonly path: string;
  #commits = 0;

  constructor(path: string) {
    this.path = path;
    mkdirSync(path);
    this.git(["init", "--quiet", "--bare", "--initial-branch=main"]);
    this.git(["hash-object", "-w", "-t", "tree", "--stdin"], "");
  }

  /** Runs git in the repository and returns its trimmed output. */
  git(args: string[], input: string | Uint8Array = ""): string {
    const { status, stdout, stderr } = spawnSync("git", ["-C", this.path, ...args], {
      input: Buffer.from(input),
      env: { PATH: "/usr/local/bin:/usr/bin:/bin", GIT_CONFIG_NOSYSTEM: "1", HOME: "/nonexistent" },
    });
    if (status !== 0) throw new Error(`git ${args.join(" ")}: ${stderr}`);
    return String(stdout).trim();
  }

  /** Creates a commit and returns its hash, without moving a branch. */
  commit(parents: string[], message = `commit ${this.#commits}`): string {
    const when = `${FIRST_SECOND + this.#commits++} +0200`;
    return this.commitRaw([
      `tree ${EMPTY_TREE}`,
      ...parents.map((hash) => `parent ${hash}`),
      `author Ada <ada@example.invalid> ${when}`,
      `committer Ada <ada@example.invalid> ${when}`,
      "",
      `${message}\n`,
    ].join("\n"));
  }

  /**
   * Creates `count` commits on top of `parent`. One in ten adds a side branch and a merge.
   * @returns the hash of the last commit.
   */
  grow(parent: string | null, count: number): string {
    const commands: string[] = [];
    for (let at = 0; at < count; at++) {
      const isSide = at % 10 === 8;
      const isMerge = at % 10 === 9;
      const parents = at === 0
        ? parent === null ? [] : [parent]
        : isMerge
        ? [`:${at - 1}`, `:${at}`]
        : [`:${isSide ? at - 1 : at}`];
      commands.push(commitCommand(at + 1, parents, FIRST_SECOND + this.#commits++));
    }
    this.git(["fast-import", "--quiet", "--force"], commands.join(""));
    return this.git(["rev-parse", GROWN_REF]);
  }

  /** Stores a commit object verbatim, even one that git would not create. */
  commitRaw(object: string | Uint8Array): string {
    return this.git(["hash-object", "-w", "-t", "commit", "--stdin", "--literally"], object);
  }

  setBranch(name: string, hash: string): void {
    this.git(["update-ref", `refs/heads/${name}`, hash]);
  }

  /** Returns the hashes that `git log` lists, oldest first. */
  list(revision: string): string[] {
    return this.git(["rev-list", "--reverse", "--topo-order", revision]).split("\n");
  }
}
