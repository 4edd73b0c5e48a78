/** A bare git repository made for a test, commit by commit, with fixed dates and so fixed hashes. */
import { Buffer } from "node:buffer";
import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";

/** Every commit has this tree: the empty one. */
const EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
const FIRST_SECOND = 1_700_000_000;

export class GitRepository {
  readonly path: string;
  #commits = 0;

  constructor(path: string) {
    this.path = path;
    mkdirSync(path);
    this.git(["init", "--quiet", "--bare", "--initial-branch=main"]);
    this.git(["hash-object", "-w", "-t", "tree", "--stdin"], "");
  }

  /** Runs git in the repository and returns what it printed, trimmed. */
  git(args: string[], input: string | Uint8Array = ""): string {
    const { status, stdout, stderr } = spawnSync("git", ["-C", this.path, ...args], {
      input: Buffer.from(input),
      env: { PATH: "/usr/local/bin:/usr/bin:/bin", GIT_CONFIG_NOSYSTEM: "1", HOME: "/nonexistent" },
    });
    if (status !== 0) throw new Error(`git ${args.join(" ")}: ${stderr}`);
    return String(stdout).trim();
  }

  /** Makes a commit and returns its hash; moves no branch. */
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

  /** Stores a commit object as it is, also one that git would not make. */
  commitRaw(object: string | Uint8Array): string {
    return this.git(["hash-object", "-w", "-t", "commit", "--stdin", "--literally"], object);
  }

  setBranch(name: string, hash: string): void {
    this.git(["update-ref", `refs/heads/${name}`, hash]);
  }

  /** Hashes as `git log` lists them, oldest first. */
  list(revision: string): string[] {
    return this.git(["rev-list", "--reverse", "--topo-order", revision]).split("\n");
  }
}
