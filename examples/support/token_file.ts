/** Reads the bearer token from a file, since other users can see a program's arguments. */
import { readFileSync } from "node:fs";

/** Returns the token in a file, without its line end; undefined if no file is given. */
export function readToken(path: string | undefined): string | undefined {
  return path === undefined ? undefined : readFileSync(path, "utf8").trimEnd();
}
