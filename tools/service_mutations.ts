/** Deliberate bugs outside `src/log/` (see `mutations.ts`). */
import type { Bugs } from "./support/mutation.ts";

const REPLAY = "client/replay";
const BACKLOG = "contract/backlog";
const CRASH_SEQUENCES = "faults/crash_sequences";
const FAULT_POINTS = "faults/fault_points";
const HISTORIES = "faults/histories";
const SWAPPED_FOLDER = "faults/swapped_folder";
const OWNED_STORAGE = "log/storage/owned_storage";
const FOLLOW_RANDOM = "service/follow_random";
const LIFECYCLE = "service/lifecycle";
const PRECONDITION = "service/precondition";

export const SERVICE_BUGS: Bugs = {
  "client/follow.ts": {
    "a follow continues from a position that the log has lost": [
      "client/follow",
      "if (this.#nextAfter !== null) await checkPosition(",
      "if (this.#nextAfter === null) await checkPosition(",
    ],
  },
  "client/position.ts": {
    "a position whose event is missing is accepted": [
      REPLAY,
      "if (event === null || !isSame) throw",
      "if (!isSame) throw",
    ],
    "the hash of a position's event is ignored": [
      REPLAY,
      "event?.event_hash === afterHash",
      "true",
    ],
  },
  "client/replay.ts": {
    "a replay continues from a position that the log has lost": [
      REPLAY,
      "    if (after !== null && isDue) await checkPosition(read, after, options);\n",
    ],
  },
  "client/unix_fetch.ts": {
    "a request with a token is sent to TCP port 80 if the socket's path is empty": [
      "client/unix_fetch",
      "  refuseImpossible(socketPath);\n",
    ],
  },
  "commands/serve.ts": {
    "a service without requests does not look at its files": [
      SWAPPED_FOLDER,
      "void findLoss().catch(() => {}), OWN",
      "{}, OWN",
    ],
  },
  "event/event_id.ts": {
    "an id is reused when the counter restarts in a new millisecond": [
      "event/event_id",
      "if (nowMs > this.#timestampMs)",
      "if (true)",
    ],
  },
  "http/server.ts": {
    "a service whose files are gone puts a socket into their place": [
      SWAPPED_FOLDER,
      "    await options.mayReopen?.();\n",
    ],
  },
  "runtime/file_lock.ts": {
    "the lock is not taken": [
      "runtime/file_lock",
      '  return "Deno" in globalThis ? await lockFileOnDeno(path) : lockFileOnNode(path);\n',
      "  void [lockFileOnDeno, lockFileOnNode];\n  return await Promise.resolve(() => {});\n",
    ],
  },
  "service/change_signal.ts": {
    "only the first event of a batch wakes followers of its key": [
      ["service/change_signal", FOLLOW_RANDOM],
      "index < events.count",
      "index < 1",
    ],
  },
  "service/event_log.ts": {
    "a retry of a committed batch waits for sealing": [
      BACKLOG,
      "return known === null ? null",
      "return known !== null ? null",
    ],
  },
  "service/follow.ts": {
    "a follower misses commits during its snapshot": [
      FOLLOW_RANDOM,
      '    this.#phase = "live";\n',
      '    this.#phase = "live";\n    this.#after = this.#hub.snapshot().frontier;\n',
    ],
    "a commit that matches during a read is missed": [
      FOLLOW_RANDOM,
      "    if (!page.exhausted) this.#matchAfter = null;\n",
      "    this.#matchAfter = page.exhausted ? undefined : null;\n",
    ],
    "a follower skips the commit that matches": [
      FOLLOW_RANDOM,
      "this.#matchAfter = before;",
      "this.#matchAfter = this.#hub.changes.frontier;",
    ],
    "a follower skips what is left of a full page": [
      FOLLOW_RANDOM,
      "    if (!page.exhausted) this.#matchAfter = null;\n",
    ],
  },
  "service/log_state.ts": {
    "the identities of sealed batches are not looked up": [
      CRASH_SEQUENCES,
      "this.#files.sealed.findBatch(source, batchId);",
      "null;",
    ],
    "a retirement in a segment is not found": [
      CRASH_SEQUENCES,
      "(entry) => entry && {",
      "(entry) => entry && null && {",
    ],
  },
  "service/mutation.ts": {
    "a conflict is detected by batch id alone, not by source": [
      CRASH_SEQUENCES,
      "batch.batchDigest === known.batch_digest",
      "batch.batchId === known.batch_id",
    ],
    "a batch does not wait for another one with the same identity": [
      HISTORIES,
      "reads = [FACT.batch(source, batchId), ",
      "reads = [",
    ],
    "a precondition does not wait for a batch in its stream": [
      HISTORIES,
      "if (precondition) reads",
      "if (false) reads",
    ],
    "a precondition waits only for the first stream of a batch": [
      HISTORIES,
      "...events.streams.map(",
      "...events.streams.slice(0, 1).map(",
    ],
    "a batch does not wait for the retirement of its source": [
      [HISTORIES, LIFECYCLE],
      "batchId), FACT.lifecycle(source)];",
      "batchId)];",
    ],
    "a retirement does not wait for the batches of its source": [
      [HISTORIES, LIFECYCLE],
      "reads: [FACT.source(source), ",
      "reads: [",
    ],
    "a lineage marker does not wait for the retirement of its predecessor": [
      LIFECYCLE,
      ", FACT.lifecycle(lineage.predecessorSource));",
      ");",
    ],
    "a lineage marker does not wait for the batches of its source": [
      LIFECYCLE,
      "reads.push(FACT.source(source), ",
      "reads.push(",
    ],
  },
  "service/writer_queue.ts": {
    "a receipt after a rest does not look at the files": [
      OWNED_STORAGE,
      "if (!storage.isDue) return null;",
      "if (true) return null;",
    ],
    "a batch overtakes one on which it depends and that waits": [
      [LIFECYCLE, PRECONDITION],
      "unsettled.has(fact))) continue;",
      "unsettled.has(fact))) { unlisted = null; continue; }",
    ],
    "a batch overtakes one on which it depends and that is being looked up": [
      "service/writer_queue",
      "if (decision instanceof Promise) reading += 1;",
      "if (decision instanceof Promise) (reading += 1) && (unlisted = null);",
    ],
    "what waits is rejected with the commit that fails": [
      PRECONDITION,
      "      for (const { queued } of committing) queued.reject(failure);\n",
      "      for (const { queued } of committing) queued.reject(failure);\n" +
      "      for (const { reject } of this.#queue.splice(0)) reject(failure);\n",
    ],
    "followers are not notified that the writer stopped": [
      [FAULT_POINTS, "contract/follow_end"],
      "    this.#changes.fire();\n    return",
      "    return",
    ],
  },
};
