/** Environment variables about the terminal. Never prompts for permission. */
import process from "node:process";

/** Returns whether NO_COLOR is set and not empty (no-color.org). */
export function isColorRefused(): boolean {
  return "Deno" in globalThis ? Deno.noColor : (process.env.NO_COLOR ?? "") !== "";
}

/** Returns TERM; undefined if unset, or if Deno may not read it. */
export function terminalKind(): string | undefined {
  if ("Deno" in globalThis) {
    const { state } = Deno.permissions.querySync({ name: "env", variable: "TERM" });
    if (state !== "granted") return undefined;
  }
  return process.env.TERM;
}
