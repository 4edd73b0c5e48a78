/** What the environment says of the terminal, as far as this process may ask. Never prompts. */
import process from "node:process";

/** Whether NO_COLOR is set, and not empty (no-color.org). Needs no permission. */
export function isColourRefused(): boolean {
  return "Deno" in globalThis ? Deno.noColor : (process.env.NO_COLOR ?? "") !== "";
}

/** TERM; undefined when it is not set, or Deno was not permitted to read it. */
export function terminalKind(): string | undefined {
  if ("Deno" in globalThis) {
    const { state } = Deno.permissions.querySync({ name: "env", variable: "TERM" });
    if (state !== "granted") return undefined;
  }
  return process.env.TERM;
}
