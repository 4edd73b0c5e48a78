/** The programs that are built for distribution, and the modules that they consist of. */

export type ProgramName = "service" | "mirror";

export interface Program {
  /** The module that starts the program. */
  entry: string;
  /** Modules and directories of modules, relative to the root of the repository. */
  sources: string[];
  /** Environment variables that the program reads. */
  variables: string[];
  /** The `package.json` files whose dependencies the program imports. */
  packages: string[];
}

const MIRROR = [
  ...["cli.ts", "arguments.ts", "failures.ts", "sessions.ts"],
  ...["nats", "push", "restore", "segments"],
];

export const PROGRAMS: Record<ProgramName, Program> = {
  service: {
    entry: "cli.ts",
    sources: ["cli.ts", "src"],
    // Set by systemd.
    variables: ["JOURNAL_STREAM"],
    packages: ["package.json"],
  },
  mirror: {
    entry: "mirror/cli.ts",
    sources: [...MIRROR.map((name) => `mirror/${name}`), "mod.ts", "event.ts", "src"],
    variables: [
      ...["NATS_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"],
      ...["AWS_REGION", "AWS_ENDPOINT_URL"],
    ],
    packages: ["mirror/package.json"],
  },
};

/** @throws {Error} if there is no such program. */
export function programNamed(name: string): Program {
  if (name === "service" || name === "mirror") return PROGRAMS[name];
  throw new Error(`unknown program ${JSON.stringify(name)}; use service or mirror`);
}
