/** What the load generator says to the peers and understands of their answers. */
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { test } from "node:test";
import {
  copyMessages,
  executeMessages,
  int64,
  parseMessage,
  queryMessage,
  startupMessage,
  timestamp,
} from "../../bench/peers/pg_messages.ts";
import { type PgReply, PgSkimmer } from "../../bench/peers/pg_replies.ts";
import { encodeCommand, type RespReply, RespSkimmer } from "../../bench/peers/resp.ts";

interface Skimmer<Reply> {
  expect(replies: number): void;
  push(data: Buffer): Reply | null;
}

/** Gives one skimmer the same bytes again and again, cut into pieces of every size. */
function assertSkims<Reply>(
  skimmer: Skimmer<Reply>,
  { bytes, replies, reply }: { bytes: Buffer; replies: number; reply: Reply },
): void {
  for (let size = 1; size <= bytes.length; size++) {
    skimmer.expect(replies);
    for (let at = 0; at < bytes.length; at += size) {
      const isLast = at + size >= bytes.length;
      const got = skimmer.push(bytes.subarray(at, at + size));
      assert.deepEqual(got, isLast ? reply : null, `pieces of ${size} bytes, at ${at}`);
    }
  }
}

const LONG = "x".repeat(100);
const NO_ENTRIES: RespReply = { entries: 0, lastId: "" };
const entry = (id: string, value: string) =>
  `*2\r\n$${id.length}\r\n${id}\r\n*2\r\n$1\r\ne\r\n$${value.length}\r\n${value}\r\n`;

const RESP_REPLIES: [string, string, number, RespReply][] = [
  ["a status", "+OK\r\n", 1, NO_ENTRIES],
  ["a number below 0", ":-1\r\n", 1, NO_ENTRIES],
  ["an absent string", "$-1\r\n", 1, NO_ENTRIES],
  ["an absent array and a status", "*-1\r\n+OK\r\n", 2, NO_ENTRIES],
  ["an array that is no entry", "*3\r\n$3\r\n1-0\r\n*0\r\n+OK\r\n", 1, NO_ENTRIES],
  ["an empty array", "*0\r\n", 1, NO_ENTRIES],
  ["strings, empty and long", `$0\r\n\r\n$100\r\n${LONG}\r\n`, 2, NO_ENTRIES],
  ["a string that looks like a reply", "$5\r\n-ERR\r\r\n", 1, NO_ENTRIES],
  ["replies to a transaction", "+OK\r\n+QUEUED\r\n*1\r\n$3\r\n1-0\r\n", 3, NO_ENTRIES],
  [
    "entries of a stream",
    `*2\r\n${entry("1-0", LONG)}${entry("1700000000000-12", "")}`,
    1,
    { entries: 2, lastId: "1700000000000-12" },
  ],
  [
    "entries of one of the streams asked for",
    `*1\r\n*2\r\n$6\r\nevents\r\n*2\r\n${entry("1-0", "a")}${entry("1-1", LONG)}`,
    1,
    { entries: 3, lastId: "1-1" },
  ],
];
for (const [name, text, replies, reply] of RESP_REPLIES) {
  test(`RespSkimmer finds the end of ${name}, however it is cut`, () => {
    assertSkims(new RespSkimmer(), { bytes: Buffer.from(text), replies, reply });
  });
}

const RESP_REFUSED: [string, string, RegExp][] = [
  ["an error", "-ERR no such thing\r\n", /^Error: Redis: ERR no such thing$/],
  ["an error within an array", "*2\r\n+OK\r\n-OOM full\r\n", /OOM full/],
  ["more than was asked for", "+OK\r\n+OK\r\n", /after the end/],
  ["a line without an end", "+".repeat(2000), /too long/],
];
for (const [name, text, message] of RESP_REFUSED) {
  test(`RespSkimmer refuses ${name}`, () => {
    const skimmer = new RespSkimmer();
    skimmer.expect(1);
    assert.throws(() => skimmer.push(Buffer.from(text)), message);
  });
}

test("encodeCommand() counts bytes, not characters", () => {
  assert.equal(
    encodeCommand(["XADD", "é", ""]).toString(),
    "*3\r\n$4\r\nXADD\r\n$2\r\né\r\n$0\r\n\r\n",
  );
});

/** A message as the server sends it. */
function pg(type: string, ...parts: (string | number[] | Buffer)[]): Buffer {
  const body = Buffer.concat(parts.map((part) => Buffer.from(part as string)));
  const head = Buffer.alloc(5);
  head.write(type, "latin1");
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
}

const READY = pg("Z", "I");
const row = (id: bigint, rest: string) =>
  pg("D", [0, 2, 0, 0, 0, 8], int64(id), [0, 0, 0, rest.length], rest);

const PG_REPLIES: [string, Buffer[], number, PgReply][] = [
  [
    "a start",
    [pg("R", [0, 0, 0, 0]), pg("S", "TimeZone\0UTC\0"), pg("K", int64(7n)), READY],
    1,
    { rows: 0, lastId: 0n, tag: "" },
  ],
  [
    "an insert",
    [pg("1"), pg("2"), pg("C", "INSERT 0 1000\0"), READY],
    1,
    { rows: 0, lastId: 0n, tag: "INSERT 0 1000" },
  ],
  [
    "rows",
    [pg("2"), row(1n, LONG), row((5n << 32n) + 0xfffffffen, "Z"), pg("C", "SELECT 2\0"), READY],
    1,
    { rows: 2, lastId: (5n << 32n) + 0xfffffffen, tag: "SELECT 2" },
  ],
  ["two statements", [pg("n"), READY, pg("3"), READY], 2, { rows: 0, lastId: 0n, tag: "" }],
];
for (const [name, messages, replies, reply] of PG_REPLIES) {
  test(`PgSkimmer finds the end of the reply to ${name}, however it is cut`, () => {
    assertSkims(new PgSkimmer(), { bytes: Buffer.concat(messages), replies, reply });
  });
}

const PG_REFUSED: [string, Buffer, RegExp][] = [
  ["an error", pg("E", "SERROR\0C42601\0Msyntax error\0\0"), /^Error: PostgreSQL: syntax error$/],
  ["a question for a password", pg("R", [0, 0, 0, 10]), /password/],
  ["a message with a length that can't be", Buffer.from("Z\0\0\0\x03"), /length 3/],
];
for (const [name, bytes, message] of PG_REFUSED) {
  test(`PgSkimmer refuses ${name}`, () => {
    const skimmer = new PgSkimmer();
    skimmer.expect(1);
    assert.throws(() => skimmer.push(bytes), message);
  });
}

test("PgSkimmer tells of notifications, asked for something or not", () => {
  let told = 0;
  const skimmer = new PgSkimmer(() => told++);
  const notification = pg("A", [0, 0, 0, 9], "events\0\0");
  assert.equal(skimmer.push(notification), null);
  assert.equal(told, 1);
  skimmer.expect(1);
  const data = Buffer.concat([notification, READY, notification]);
  assert.deepEqual(skimmer.push(data), { rows: 0, lastId: 0n, tag: "" });
  assert.equal(told, 3);
});

const PG_MESSAGES: [string, Buffer, string][] = [
  [
    "startupMessage()",
    startupMessage("u", "d"),
    "0000001b 00030000 7573657200 7500 646174616261736500 6400 00",
  ],
  ["queryMessage()", queryMessage("X"), "51 00000006 5800"],
  ["parseMessage()", parseMessage("s", "X"), "50 0000000a 7300 5800 0000"],
  [
    "executeMessages()",
    executeMessages("s", [Buffer.from("ab"), int64(-2n)]),
    "42 00000023 00 7300 00010001 0002 00000002 6162 00000008 fffffffffffffffe 00010001" +
    "45 00000009 00 00000000",
  ],
  [
    "copyMessages()",
    copyMessages([["ab", ""], ["\\\t\n\r"]]),
    "64 00000011 6162 09 0a 5c5c 5c74 5c6e 5c72 0a 63 00000004",
  ],
  ["timestamp()", timestamp("2000-01-01T00:00:01.5Z"), "000000000016e360"],
];
for (const [name, bytes, hex] of PG_MESSAGES) {
  test(`${name} makes the bytes that the protocol documents`, () => {
    assert.equal(bytes.toString("hex"), hex.replaceAll(" ", ""));
  });
}
