/** UTF-8 of RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. */

/** Returns the length of the longest valid prefix: the offset of the first malformed sequence. */
export function validUtf8Bytes(bytes: Uint8Array): number {
  let at = 0;
  while (at < bytes.length) {
    const sizeBytes = bytes[at]! < 0x80 ? 1 : sequenceBytes(bytes, at);
    if (sizeBytes === 0) break;
    at += sizeBytes;
  }
  return at;
}

/** Returns the size of the multi-byte sequence at `at`; 0 if malformed. */
function sequenceBytes(bytes: Uint8Array, at: number): 0 | 2 | 3 | 4 {
  const lead = bytes[at]!;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  if (lead < 0xe0) return isTail(bytes[at + 1]) ? 2 : 0;
  const second = bytes[at + 1];
  if (second === undefined || !isSecond(lead, second) || !isTail(bytes[at + 2])) return 0;
  if (lead < 0xf0) return 3;
  return isTail(bytes[at + 3]) ? 4 : 0;
}

/** Checks a second byte, whose range depends on the lead byte (RFC 3629 section 4). */
function isSecond(lead: number, byte: number): boolean {
  const from = lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80;
  const to = lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf;
  return byte >= from && byte <= to;
}

function isTail(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x80 && byte <= 0xbf;
}

/** Returns the size of well-formed text in UTF-8. */
export function utf8Bytes(text: string): number {
  let sizeBytes = text.length;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0x80) continue;
    // A surrogate pair is two units and four bytes: two bytes per half.
    const isSurrogate = unit >= 0xd800 && unit <= 0xdfff;
    sizeBytes += unit < 0x800 || isSurrogate ? 1 : 2;
  }
  return sizeBytes;
}
