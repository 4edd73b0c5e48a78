/**
 * `restore` and `standby`. Both build a deployment's log from a stream; `standby` then keeps
 * following the stream. They can be stopped at any time, since the directory always contains a
 * valid log, which the next run continues.
 */
import { randomFillSync } from "node:crypto";
import { join } from "node:path";
import { loadConfig } from "../../src/commands/config.ts";
import { CONFIG_FILE, isKind } from "../../src/commands/deployment.ts";
import { operationalError } from "../../src/commands/exit.ts";
import { createFolder, init } from "../../src/commands/init.ts";
import { startProgress } from "../../src/commands/progress.ts";
import type { Terminal } from "../../src/commands/terminal.ts";
import { runAsWriter } from "../../src/commands/writer_lock.ts";
import { TAIL_ROTATE_BYTES } from "../../src/limits.ts";
import { type Log, openLog } from "../../src/log/log.ts";
import { sealThreads } from "../../src/log/sealing/seal_thread.ts";
import { fileStorage } from "../../src/log/storage/file_storage.ts";
import { PARTS, readParts } from "../nats/parts.ts";
import {
  type MirrorStream,
  openStream,
  StreamNotReadyError,
  type StreamOptions,
} from "../nats/stream.ts";
import { fetchSegments, openStored } from "../segments/fetch.ts";
import { ONCE_IDLE_MS_MAX, RESTORE_IDLE_MS_MAX, runSessions } from "../sessions.ts";
import { HeadWatch } from "./head_watch.ts";
import { checkLeader } from "./leader_check.ts";
import { BEHIND_MS_MAX, PusherEnd } from "./pusher_end.ts";
import { Replication } from "./replication.ts";
import { findStart } from "./start_sequence.ts";
import { readStream } from "./stream_reader.ts";

/** Maximum time between commits while messages arrive. */
const COMMIT_INTERVAL_MS = 200;

export interface RestoreOptions extends StreamOptions {
  command: "restore" | "standby";
  /** Directory of the deployment, which is initialized if it does not exist. */
  dir: string;
  /** A chain head that the log must reach, as 64 lowercase hex digits. */
  head: string | undefined;
  /** URL of segments stored by the `segments` command, which are restored first. */
  segments: string | undefined;
  /** Whether to return once the log contains all messages that the stream had at the start. */
  once: boolean;
  terminal: Terminal;
}

/**
 * Builds the log for a deployment from a stream.
 * @throws {CommandError} if the stream does not continue the log, an event was altered, or `head`
 *   was not reached.
 */
export async function restore(options: RestoreOptions): Promise<void> {
  const { dir, segments, terminal: { report, stop } } = options;
  const configPath = join(dir, CONFIG_FILE);
  if (!isKind(configPath, "file")) {
    // A wrong URL is refused before anything is created.
    if (segments !== undefined) await openStored(segments);
    await init(dir);
  }
  const config = await loadConfig(configPath);
  // A deployment may consist of only the configuration, copied from the lost machine.
  await createFolder(join(config.dataDir, "log"));
  await runAsWriter("mirror", config, async (logDir) => {
    const storage = fileStorage(logDir);
    if (segments !== undefined) await fetchSegments(segments, logDir, report);
    const { makeSegment, close } = sealThreads(logDir);
    const log = await openLog({
      storage,
      clockMs: Date.now,
      randomBytes: (into) => void randomFillSync(into),
      report,
      sealing: { maker: { makeSegment, close }, rotateBytes: TAIL_ROTATE_BYTES },
    });
    try {
      const watch = await HeadWatch.over(log, options.head);
      let isComplete = false;
      const pusher = new PusherEnd(log, report);
      const session = async (onProgress: () => void) => {
        const onHead = (head: string) => {
          watch.see(head);
          onProgress();
        };
        await followStream(log, pusher, onHead, options).catch((error) => {
          const isFinal = options.once && error instanceof StreamNotReadyError;
          throw isFinal ? operationalError(error.message) : error;
        });
        isComplete = true;
      };
      const onceIdleMsMax = options.command === "restore" ? RESTORE_IDLE_MS_MAX : ONCE_IDLE_MS_MAX;
      const idleMsMax = options.once ? onceIdleMsMax : Infinity;
      await runSessions(session, { stop, report, idleMsMax });
      report(`the log ends with event ${log.snapshot.frontier}, head ${log.head}`);
      if (isComplete) watch.conclude(log);
      else if (options.once) throw operationalError("interrupted; run the same command again");
    } finally {
      await log.close();
    }
  });
}

/** Runs one session. It ends on `stop`, on a failure or, with `once`, after catching up. */
async function followStream(
  log: Log,
  pusher: PusherEnd,
  onHead: (head: string) => void,
  options: RestoreOptions,
): Promise<void> {
  const { stop } = options.terminal;
  const stream = await openStream(options, { isCreated: false });
  const replication = new Replication(log, options.stream, onHead);
  const progress = startProgress(options.terminal, "restored");
  const watching = setInterval(() => void pusher.watch(stream).catch(() => {}), BEHIND_MS_MAX);
  try {
    await pusher.ask(stream);
    await replicate(stream, log, replication, options, progress.update);
  } finally {
    clearInterval(watching);
    progress.end();
    await stream.close();
    await replication.finish();
  }
  const { openEvents } = replication;
  if (openEvents > 0) {
    options.terminal.report(
      `the stream ends within a batch: the last ${openEvents} events were not restored`,
    );
  }
  if (options.once && !stop.aborted) pusher.conclude();
}

async function replicate(
  stream: MirrorStream,
  log: Log,
  replication: Replication,
  { once, terminal: { stop } }: RestoreOptions,
  onEvents: (done: number, total: number) => void,
): Promise<void> {
  const info = await stream.info();
  if (once) checkLeader(info);
  const startSeq = await findStart(stream, info, log.snapshot.frontier, stop);
  const { last_seq: lastSeq } = info.state;
  const targetSeq = once ? lastSeq : Infinity;
  if (startSeq > targetSeq) return;
  let flushedMs = performance.now();
  for await (const messages of readStream(stream, { startSeq, lastSeq }, stop)) {
    for (const { seq, message } of messages) {
      const isInParts = message.data.length === 0;
      const header = isInParts ? message.headers?.get(PARTS) : undefined;
      const body = header ? await readParts(stream, header) : undefined;
      replication.add(seq, message, body);
      if (seq >= targetSeq) return;
    }
    const { pending } = messages.at(-1)!;
    const isFlushed = pending === 0 || performance.now() - flushedMs > COMMIT_INTERVAL_MS;
    if (isFlushed) flushedMs = performance.now();
    if (isFlushed || replication.isFull) await replication.send({ isFlushed });
    onEvents(replication.events, replication.events + pending);
  }
}
