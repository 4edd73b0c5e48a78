import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { closeSync, openSync, readSync } from "node:fs";
import process from "node:process";
import { test } from "node:test";
import { compileArguments } from "../../../tools/compile/command.ts";
import { HEADER_BYTES, readExecutableHeader } from "../../../tools/compile/executable_header.ts";
import { TARGETS, targetsNamed } from "../../../tools/compile/targets.ts";

test("targetsNamed() finds targets by name or triple, or all of them", () => {
  const triplesOf = (name: string) => targetsNamed(name).map(({ triple }) => triple);
  assert.deepEqual(triplesOf("linux-arm64"), ["aarch64-unknown-linux-gnu"]);
  assert.deepEqual(triplesOf("aarch64-apple-darwin"), ["aarch64-apple-darwin"]);
  assert.deepEqual(triplesOf("all"), TARGETS.map(({ triple }) => triple));
});

test("targetsNamed() lists the known targets when a name is unknown", () => {
  for (const name of ["", "linux", "x86_64-pc-windows-msvc"]) {
    assert.throws(() => targetsNamed(name), (error: Error) => {
      assert.ok(error.message.startsWith(`unknown target ${JSON.stringify(name)}; use all, `));
      for (const target of TARGETS) {
        assert.ok(error.message.includes(`${target.name} (${target.triple})`));
      }
      return true;
    });
  }
});

const OF_ALL = [
  ...["compile", "--quiet", "--no-check", "--no-lock", "--no-code-cache", "--no-prompt"],
  ...["--allow-read", "--allow-write", "--allow-sys", "--allow-net", "--allow-env=JOURNAL_STREAM"],
  "--v8-flags=--heap-growing-percent=50,--max-semi-space-size=8",
];

test("compileArguments() grants the permissions that the program needs and embeds its workers", () => {
  assert.deepEqual(
    compileArguments({ triple: undefined, output: "/o", workers: ["src/a_worker.ts", "b"] }),
    [...OF_ALL, "--include", "src/a_worker.ts", "--include", "b", "--output", "/o", "cli.js"],
  );
  for (const { name, triple } of TARGETS) {
    assert.deepEqual(
      compileArguments({ triple, output: name, workers: [] }),
      [...OF_ALL, "--target", triple, "--output", name, "cli.js"],
    );
  }
});

function elf(machine: number): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.write("\x7fELF", "latin1");
  header.writeUInt16LE(machine, 0x12);
  header.writeBigUInt64LE(1000n, 0x28);
  header.writeUInt16LE(64, 0x3a);
  header.writeUInt16LE(3, 0x3c);
  return header;
}

function machO(cpu: number): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt32LE(0xfeedfacf, 0);
  header.writeUInt32LE(cpu, 4);
  return header;
}

test("readExecutableHeader() recognizes executables of the targets and nothing else", () => {
  const headers: [Buffer, target: string | null, runtimeBytes: number | null][] = [
    [elf(62), "linux-x64", 1192],
    [elf(183), "linux-arm64", 1192],
    [elf(243), null, 1192],
    [machO(0x01000007), "macos-x64", null],
    [machO(0x0100000c), "macos-arm64", null],
    [Buffer.from("#!/bin/sh".padEnd(HEADER_BYTES)), null, null],
    [Buffer.alloc(0), null, null],
  ];
  for (const [header, target, runtimeBytes] of headers) {
    assert.deepEqual(readExecutableHeader(header), { target, runtimeBytes });
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
