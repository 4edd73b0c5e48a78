import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { BodyDecoder } from "../../src/http/body_decoder.ts";
import { randomInteger, seededRandom, testSeed } from "../../tools/support/random.ts";

const NEXT = "GET / HTTP/1.1\r\n\r\n";

test("BodyDecoder returns the content of chunks of any size, however they are split", () => {
  const seed = testSeed();
  const random = seededRandom(seed);
  for (let round = 0; round < 200; round++) {
    const content = randomBytes(randomInteger(random, 0, 300));
    const chunks: Buffer[] = [];
    for (let at = 0; at < content.length;) {
      const chunk = content.subarray(at, at + randomInteger(random, 1, round % 2 === 0 ? 1 : 40));
      const size = chunk.length.toString(16).padStart(randomInteger(random, 1, 10), "0");
      const isUpper = randomInteger(random, 0, 1) === 1;
      chunks.push(Buffer.from(`${isUpper ? size.toUpperCase() : size}\r\n`), chunk);
      chunks.push(Buffer.from("\r\n"));
      at += chunk.length;
    }
    const sent = Buffer.concat([...chunks, Buffer.from(`0\r\nA: b\r\n\r\n${NEXT}`)]);
    const decoder = new BodyDecoder(null);
    const received: Buffer[] = [];
    let rest = "";
    for (let at = 0; at < sent.length;) {
      const read = Buffer.from(sent.subarray(at, at + randomInteger(random, 1, 60)));
      at += read.length;
      const decoded = decoder.decode(read);
      received.push(Buffer.from(decoded.content));
      rest += read.toString("latin1", decoded.end);
    }
    assert.ok(decoder.isComplete);
    assert.deepEqual(Buffer.concat(received), content, `seed ${seed}`);
    assert.equal(rest, NEXT, `seed ${seed}`);
  }
});
