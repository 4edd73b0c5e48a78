import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { closeSync, openSync, readSync } from "node:fs";
import process from "node:process";
import { test } from "node:test";
import { PROGRAMS } from "../../../tools/build/programs.ts";
import { compileArguments } from "../../../tools/compile/command.ts";
import { HEADER_BYTES, readExecutableHeader } from "../../../tools/compile/executable_header.ts";
import { TARGETS, targetsNamed } from "../../../tools/compile/targets.ts";

test("targetsNamed() finds targets by name or triple, or all of them", () => {
  const triplesOf = (name: string) => targetsNamed(name).map(({ triple }) => triple);
  assert.deepEqual(triplesOf("linux-arm64"), ["aarch64-unknown-linux-gnu"]);
  assert.deepEqual(triplesOf("aarch64-apple-darwin"), ["aarch64-apple-darwin"]);
  assert.deepEqual(triplesOf("all"), TARGETS.map(({ triple }) => triple));
});

const OF_ALL = [
  ...["compile", "--quiet", "--no-check", "--no-lock", "--no-code-cache", "--no-prompt"],
  ...["--allow-read", "--allow-write", "--allow-sys", "--allow-net", "--allow-env=JOURNAL_STREAM"],
  "--v8-flags=--heap-growing-percent=50,--max-semi-space-size=8",
];

const program = PROGRAMS.service;

test("compileArguments() grants the permissions that the program needs and embeds its workers", () => {
  assert.deepEqual(
    compileArguments({
      triple: undefined,
      output: "/o",
      program,
      workers: ["src/a_worker.ts", "b"],
    }),
    [...OF_ALL, "--include", "src/a_worker.ts", "--include", "b", "--output", "/o", "cli.js"],
  );
  for (const { name, triple } of TARGETS) {
    assert.deepEqual(
      compileArguments({ triple, output: name, program, workers: [] }),
      [...OF_ALL, "--target", triple, "--output", name, "cli.js"],
    );
  }
});

test("readExecutableHeader() recognizes the runtime executing this test", () => {
  const file = openSync(process.execPath, "r");
  const header = Buffer.alloc(HEADER_BYTES);
  readSync(file, header);
  closeSync(file);
  const system = process.platform === "darwin" ? "macos" : process.platform;
  assert.equal(readExecutableHeader(header).target, `${system}-${process.arch}`);
});
