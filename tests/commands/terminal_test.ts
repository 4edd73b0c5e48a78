/** Colors on a capable terminal, unless disabled, and nowhere else. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { runCli } from "../../tools/support/program.ts";
import { runOnTerminal } from "../support/on_terminal.ts";

const RED = "\x1b[31m";
const RESET = "\x1b[0m";
const MESSAGE = 'unknown command "nothing"';

const TERMINALS: [variables: Record<string, string>, output: string][] = [
  [{ TERM: "xterm" }, `${RED}${MESSAGE}${RESET}\r\n`],
  [{ TERM: "xterm", NO_COLOR: "1" }, `${MESSAGE}\r\n`],
  [{ TERM: "dumb" }, `${MESSAGE}\r\n`],
];

for (const [variables, output] of TERMINALS) {
  const title = `${JSON.stringify(variables)}, an error is ${JSON.stringify(output)}`;
  test(`on a terminal with ${title}`, (context) => {
    const run = runOnTerminal(["nothing"], variables);
    if (run === null) return context.skip("there is no script of util-linux");
    assert.equal(run.status, 2);
    assert.equal(run.output, `${output}Run service --help for usage\r\n`);
  });
}

test("an error has no color if standard error is not a terminal", async () => {
  const { stderr } = await runCli(["nothing"]);
  assert.equal(stderr, `${MESSAGE}\nRun service --help for usage\n`);
});
