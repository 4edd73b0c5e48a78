/** Checks that no batch is in a log twice, whatever files its two commits are in. */
import { quoteString } from "../../event/json/quote_string.ts";
import { CommitReader } from "../wal/commit_reader.ts";
import { BATCH_COLUMNS, type BatchRun, batchRuns } from "../segment/segment_batches.ts";
import { openSegment } from "../segment/segment_reader.ts";
import type { Storage } from "../storage/storage.ts";
import { VerifyFailure } from "./verify_failure.ts";
import { IdentitySet } from "./verify_identities.ts";
import type { Inventory } from "./verify_inventory.ts";

/** What tells a batch from all others. */
interface Identity {
  source: string;
  batch_id: string;
}

export class BatchCheck {
  readonly #slotsMax: number | undefined;
  #identities: IdentitySet;

  /** @param slotsMax bounds the memory of one pass; a power of two. */
  constructor(slotsMax?: number) {
    this.#slotsMax = slotsMax;
    this.#identities = new IdentitySet(0, slotsMax);
  }

  /** Takes in the next batch of the log. @throws {VerifyFailure} `idempotency_invalid` */
  add({ source, batch_id }: Identity, path: string): void {
    if (this.#identities.add(source, batch_id)) return;
    const what = `batch ${spelled(batch_id)} of source ${spelled(source)} is there once more`;
    throw new VerifyFailure("idempotency_invalid", what, { path });
  }

  /**
   * Takes in the batches of a segment, as an `IdentityList` has them: no two are the same.
   * @returns false, and takes none, when one is known.
   */
  addAll(identities: Uint32Array): boolean {
    return this.#identities.addAll(identities);
  }

  /**
   * Makes up for batches that there was no room for: reads those of the log again until each has
   * been held against all others. To be called when all of the log has been taken in and is right.
   * @throws {VerifyFailure} `idempotency_invalid`
   */
  async finish(storage: Storage, inventory: Inventory): Promise<void> {
    const { segments } = inventory.manifest;
    for (let { left } = this.#identities; left !== null; { left } = this.#identities) {
      this.#identities = new IdentitySet(left, this.#slotsMax);
      for (const { path } of segments) await this.#addSegment(storage, path);
      for (const { path, file, sizeBytes } of commitFiles(inventory)) {
        const reader = new CommitReader(file, 0, sizeBytes);
        for (let next = await reader.next(); next !== null; next = await reader.next()) {
          for (const entry of next.commit.batches) this.add(entry, path);
        }
      }
    }
  }

  async #addSegment(storage: Storage, path: string): Promise<void> {
    const segment = await openSegment(storage, path);
    try {
      let last: BatchRun | null = null;
      for (let number = 0; number < segment.rowGroups.length; number++) {
        const columns = await segment.readColumns(number, BATCH_COLUMNS);
        for (const run of batchRuns(columns, segment.rowGroups[number]!.rows)) {
          if (last === null || !goesOn(last, run)) {
            this.add({ source: run.source, batch_id: run.batchId }, path);
          }
          last = run;
        }
      }
    } finally {
      await segment.close();
    }
  }
}

/** Whether a row group begins with the rest of the batch that the one before ends with. */
function goesOn(last: BatchRun, { source, batchId }: BatchRun): boolean {
  return source === last.source && batchId === last.batchId;
}

function commitFiles({ pending, tail }: Inventory) {
  return tail === null ? pending : [...pending, tail];
}

function spelled(text: string): string {
  return quoteString(text.toWellFormed());
}
