/**
 * A consumer of several logs, each with its own service, pusher and stream:
 *
 *     node mirror/examples/merge.ts --streams ground-a,ground-b,ground-c [--nats URL] [--once]
 *
 * Prints `<stream> <sequence> <event>` for each event. A source lives in one log, so its events are
 * in order. Between logs, ids decide, as far as the clocks of their machines agree: an event is
 * printed once every stream has a later one or has no more. A consumer that keeps results stores
 * the sequence of each stream with them, and starts after it.
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

/** A stream, and what has arrived of it. */
interface Input {
  name: string;
  waiting: Message[];
  /** Whether it had no more when its last message was delivered. */
  isAtEnd: boolean;
}

/** Takes the messages that are due, in order of their ids. */
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
    input.isAtEnd = state.messages === 0;
    onArrival();
    if (once && input.isAtEnd) return;
    for await (
      const messages of readStream(stream, state.first_seq, new AbortController().signal)
    ) {
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
