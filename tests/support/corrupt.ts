/** Small functions that corrupt file bytes, and one that repairs the framing. */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";

/** A copy with one bit flipped. Bit 0 is the lowest bit of byte 0. */
export function flipBit(bytes: Uint8Array, bit: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[bit >> 3]! ^= 1 << (bit & 7);
  return copy;
}

/** A copy truncated to `sizeBytes`. */
export function truncateAt(bytes: Uint8Array, sizeBytes: number): Buffer {
  return Buffer.from(bytes.subarray(0, sizeBytes));
}

/** A copy with `more` appended. */
export function appendBytes(bytes: Uint8Array, more: string | Uint8Array): Buffer {
  return Buffer.concat([bytes, Buffer.from(more as string)]);
}

/** A copy of a tail in which the sha256 of every commit is recomputed. */
export function repairFraming(bytes: Uint8Array): Buffer {
  const copy = Buffer.from(bytes);
  let offset = 0;
  while (offset < copy.length) {
    const line = copy.toString("utf8", offset, copy.indexOf("\n", offset));
    const commitText = line.slice('{"commit":'.length, line.lastIndexOf(',"sha256":"'));
    const bodyStart = offset + Buffer.byteLength(line) + 1;
    const bodyEnd = bodyStart + JSON.parse(commitText).bytes;
    const sha256 = createHash("sha256").update(commitText + "\n")
      .update(copy.subarray(bodyStart, bodyEnd)).digest("hex");
    copy.write(sha256, bodyStart - '"}\n'.length - sha256.length);
    offset = bodyEnd;
  }
  return copy;
}
