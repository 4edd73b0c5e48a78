/**
 * Consumes several logs, each with its own service, pusher and stream:
 *
 *     node mirror/examples/merge.ts --streams ground-a,ground-b,ground-c [--nats URL] [--once]
 *
 * Prints `<stream> <sequence> <event>` for each event. Each source belongs to one log, so its
 * events are in order. Across logs, events are ordered by id, which is only as accurate as the
 * machines' clocks. An event is printed as soon as every other stream has a later event or no more
 * events. To resume, a consumer stores each stream's sequence with its own results and starts after
 * that sequence.
 */
import process from "node:process";
import { parseArgs } from "node:util";
import { openStream } from "../nats/stream.ts";
import { readStream } from "../restore/stream_reader.ts";

interface Message {
  seq: number;
  eventId: string;
  line: string;
}

/** A stream and its undelivered messages. */
interface Input {
  name: string;
  waiting: Message[];
  /** Whether the stream had no further messages when the last one was delivered. */
  isAtEnd: boolean;
}

/** Removes and yields messages in id order. Stops if the next one may not have arrived yet. */
function* due(inputs: Input[]): Generator<[Input, Message]> {
  while (inputs.every(({ waiting, isAtEnd }) => waiting.length > 0 || isAtEnd)) {
    const filled = inputs.filter(({ waiting }) => waiting.length > 0);
    if (filled.length === 0) return;
    const next = filled.reduce((first, other) =>
      other.waiting[0]!.eventId < first.waiting[0]!.eventId ? other : first
    );
    yield [next, next.waiting.shift()!];
  }
}

async function follow(input: Input, servers: string, onArrival: () => void, once: boolean) {
  const stream = await openStream({ servers, stream: input.name }, { isCreated: false });
  try {
    const { state } = await stream.info();
    const range = { startSeq: Math.max(1, state.first_seq), lastSeq: state.last_seq };
    input.isAtEnd = state.messages === 0;
    onArrival();
    if (once && input.isAtEnd) return;
    for await (const messages of readStream(stream, range, new AbortController().signal)) {
      for (const { seq, message, pending } of messages) {
        const { eventId } = stream.factsOf({ seq, header: message.headers! });
        input.waiting.push({ seq, eventId, line: message.string() });
        input.isAtEnd = pending === 0;
      }
      onArrival();
      if (once && input.isAtEnd) return;
    }
  } finally {
    await stream.close();
  }
}

const { values } = parseArgs({
  options: {
    streams: { type: "string", default: "ground" },
    nats: { type: "string", default: "nats://127.0.0.1:4222" },
    once: { type: "boolean", default: false },
  },
});
const inputs = values.streams.split(",")
  .map((name): Input => ({ name, waiting: [], isAtEnd: false }));
const print = () => {
  for (const [{ name }, { seq, line }] of due(inputs)) {
    process.stdout.write(`${name} ${seq} ${line}\n`);
  }
};
await Promise.all(inputs.map((input) => follow(input, values.nats, print, values.once)));
