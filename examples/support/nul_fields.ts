/** Splits a byte stream into NUL-terminated fields, and truncates fields that are too long. */

export interface NulField {
  /** Decoded UTF-8, with U+FFFD for malformed bytes. */
  text: string;
  /** Whether the field exceeded the limit and was truncated. */
  isCut: boolean;
}

/** Yields each field. Bytes after the last NUL are ignored. */
export async function* nulFields(
  chunks: AsyncIterable<Uint8Array>,
  fieldBytesMax: number,
): AsyncGenerator<NulField> {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let text = "";
  let fieldBytes = 0;
  for await (const chunk of chunks) {
    let start = 0;
    while (start < chunk.length) {
      const nul = chunk.indexOf(0, start);
      const end = nul === -1 ? chunk.length : nul;
      const roomBytes = Math.max(0, fieldBytesMax - fieldBytes);
      const kept = chunk.subarray(start, Math.min(end, start + roomBytes));
      text += decoder.decode(kept, { stream: true });
      fieldBytes += end - start;
      start = end + 1;
      if (nul === -1) continue;
      yield {
        text: text + decoder.decode(),
        isCut: fieldBytes > fieldBytesMax,
      };
      text = "";
      fieldBytes = 0;
    }
  }
}
