/** Runs the `sh` code blocks in a document in order in one bash process. */
import { spawn, spawnSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import process from "node:process";
import type { Fence } from "./fences.ts";

/** Time after which a session is considered hung. On an idle machine, a session takes seconds. */
const SESSION_TIMEOUT_MS = 300_000;

export interface SessionEnd {
  /** The output of each code block that ran, on both streams, in order. */
  outputs: Map<Fence, string>;
  /** The code block that failed, if any. */
  failed: Fence | null;
  /** Standard error of the shell itself. */
  stderr: string;
}

/** Shell functions. They poll, because a shell can wait only for its own children. */
const PRELUDE = `set -e -o pipefail -m
until_true() {
  for ((n = 0; n < 1200; n++)); do
    "$@" && return
    sleep 0.05
  done
  echo "timed out waiting for: $*" >&2
  return 1
}
answers() {
  for socket in demo/data/ground.sock srv/*/data/ground.sock; do
    curl --silent --max-time 5 --unix-socket "$socket" http://localhost/v1/streams > /dev/null &&
      return
  done
  return 1
}
serves() {
  kill -0 "$background" || exit
  answers
}
interrupt() {
  kill -INT -- "-$1" 2> /dev/null || true
  wait "$1" || true
}
background=
end_background() {
  if [[ -n $background ]]; then interrupt "$background"; fi
  background=
}
end_all() {
  for pid in $(jobs -p); do kill -TERM -- "-$pid" 2> /dev/null || true; done
  wait
}
trap end_all EXIT
`;

/** @param folder working directory, which receives the output. */
export async function runFences(fences: Fence[], folder: string): Promise<SessionEnd> {
  const script = PRELUDE + fences.map(step).join("\n");
  const { code, stderr } = await runBash(script, folder);
  const outputs = new Map<Fence, string>();
  for (const [index, fence] of fences.entries()) {
    const output = await readFile(join(folder, outputName(index)), "utf8").catch(() => null);
    if (output === null) break;
    outputs.set(fence, output);
  }
  const failed = code === 0 ? null : [...outputs.keys()].at(-1) ?? fences[0]!;
  return { outputs, failed, stderr };
}

function outputName(index: number): string {
  return `.output-${index}`;
}

function step({ tag, text }: Fence, index: number): string {
  const out = outputName(index);
  const group = `{\n${text}\n} > ${out} 2>&1`;
  if (tag === "background") {
    return `end_background\n${group} &\nbackground=$!\nuntil_true serves`;
  }
  if (tag === "follow") {
    return `${group} &\nfollowing=$!\nuntil_true test -s ${out}\ninterrupt $following`;
  }
  // Waits for the service, as a reader would before typing the next command.
  return / serve &$/m.test(text) ? `${group}\nuntil_true answers` : group;
}

/** Runs bash in its own process session, so that leftover processes can be found and killed. */
async function runBash(
  script: string,
  cwd: string,
): Promise<{ code: number | null; stderr: string }> {
  const child = spawn("bash", ["--norc", "-c", script], {
    cwd,
    detached: true,
    env: { ...process.env, PATH: `${join(cwd, "bin")}:${process.env.PATH}` },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const killSession = () => spawnSync("pkill", ["-KILL", "-s", String(child.pid)]);
  let stderr = "";
  const timer = setTimeout(() => {
    stderr += `hung: killed after ${SESSION_TIMEOUT_MS} ms\n`;
    killSession();
  }, SESSION_TIMEOUT_MS);
  child.stderr.setEncoding("utf8").on("data", (text: string) => stderr += text);
  try {
    return await new Promise((resolve, reject) => {
      child.on("error", reject);
      child.on("close", (code) => resolve({ code, stderr }));
    });
  } finally {
    clearTimeout(timer);
    killSession();
  }
}
