/** Connections that stay open but never deliver what a command is waiting for. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { signalChild, untilPrinted } from "../../tools/support/program.ts";
import {
  appendPayloads,
  end,
  headIn,
  pushAll,
  startMirror,
  startPush,
  testWithNats,
} from "./support/mirrored.ts";
import { type Change, withProxy } from "./support/nats_proxy.ts";

const PAYLOADS = ["a", "b", "c", "d", "e", "f"];
const PERMISSIONS = ["--allow-all"];
/** Time limit for a restore that notices a stall within 10 s and then takes about 1 s. */
const RESTORE_MS_MAX = 120_000;
/** Time limit for an exit. Unanswered pings close a connection only after 20 to 30 s. */
const PUSH_MS_MAX = 15_000;

/** Start of the reply subject of a message in the stream. */
const STREAM_MESSAGE = " $JS.ACK.ground.";
/** The stream sequence and the consumer sequence in that subject. */
const SEQUENCES = /( \$JS\.ACK\.ground\.\w+\.1)\.(\d+)\.(\d+)/;

/** Acts like a consumer whose server does not have these messages. */
function skip(first: number, last: number): Change {
  return (message) => {
    const seq = Number(SEQUENCES.exec(message)?.[2]);
    if (seq >= first && seq <= last) return "";
    return message.replace(SEQUENCES, (_, start: string, seq: string, delivered: string) => {
      const skipped = Number(seq) > last ? last - first + 1 : 0;
      return `${start}.${seq}.${Number(delivered) - skipped}`;
    });
  };
}

/** Delivers each pair of messages in the opposite order. */
function swap(): Change {
  let held = "";
  return (message) => {
    if (!SEQUENCES.test(message)) return message;
    const [earlier, isHeld] = [held, held === ""];
    held = isHeld ? message : "";
    return isHeld ? "" : message + earlier;
  };
}

/** Reports that the stream's leader has not heard from its replicas for this long. */
function silenceReplicas(active: number): Change {
  const replicas = ["n1", "n2"].map((name) => ({ name, current: true, active }));
  return (message) => {
    if (!message.includes("stream_info_response")) return message;
    const [line = "", json = ""] = message.split("\r\n");
    const payload = JSON.stringify({ ...JSON.parse(json), cluster: { leader: "n0", replicas } });
    return `${line.replace(/\d+$/, `${payload.length}`)}\r\n${payload}\r\n`;
  };
}

interface Stall {
  name: string;
  /** Creates the change for a command's first connection. Later connections work normally. */
  change: () => Change;
  /** The reason that the command reports. */
  reported: RegExp;
}

const STALLS: Stall[] = [
  { name: "no greeting", change: () => () => "", reported: /timeout; reconnecting/ },
  {
    name: "no response to a request",
    change: () => (message) => message.includes("consumer_create_response") ? "" : message,
    reported: /timeout; reconnecting/,
  },
  {
    name: "heartbeats, but no messages",
    change: () => (message) => message.includes(STREAM_MESSAGE) ? "" : message,
    reported: /the stream's consumer is stuck at message 1; reconnecting/,
  },
  {
    name: "the last message is lost on the way",
    change: () => {
      const last = new RegExp(` \\$JS\\.ACK\\.ground\\.\\w+\\.1\\.${PAYLOADS.length}\\.`);
      return (message) => last.test(message) ? "" : message;
    },
    reported: /the stream's consumer is stuck at message 6; reconnecting/,
  },
  {
    name: "silence after the first message",
    change: () => {
      let isSilent = false;
      return (message) => {
        if (isSilent) return "";
        isSilent = message.includes(STREAM_MESSAGE);
        return message;
      };
    },
    reported: /nothing from the stream's consumer in 5000 ms; reconnecting/,
  },
  {
    name: "the stream loses its end",
    change: () => {
      let isLost = false;
      return (message) => {
        isLost ||= message.includes(STREAM_MESSAGE);
        return isLost ? message : message.replace('"last_seq":6', '"last_seq":7');
      };
    },
    reported: /the stream's consumer is stuck at message 7; reconnecting/,
  },
  {
    name: "a leader without replicas",
    change: () => silenceReplicas(3.1e9),
    reported: /n0 may no longer lead stream ground: n1, n2 did not answer it; reconnecting/,
  },
  {
    name: "a leader with replicas",
    change: () => silenceReplicas(2.9e9),
    reported: /^(?!.*reconnecting)/s,
  },
  {
    name: "the first messages are skipped",
    change: () => skip(1, 2),
    reported: /the consumer skipped message 1, which the stream contains; reconnecting/,
  },
  {
    name: "messages in the middle are skipped",
    change: () => skip(3, 4),
    reported: /the consumer skipped message 3, which the stream contains; reconnecting/,
  },
  {
    name: "a message is lost on the way",
    change: () => (message) => SEQUENCES.exec(message)?.[2] === "3" ? "" : message,
    reported: /message 3 to the stream's consumer was lost; reconnecting/,
  },
  {
    name: "messages arrive in the wrong order",
    change: swap,
    reported: /message 1 to the stream's consumer was lost; reconnecting/,
  },
  {
    name: "messages are delivered twice",
    change: () => (message) => SEQUENCES.test(message) ? message + message : message,
    reported: /^(?!.*reconnecting)/s,
  },
];

testWithNats("restore survives every kind of stalled connection", async (mirrored) => {
  const { served, nats } = mirrored;
  await appendPayloads(mirrored, "b1", PAYLOADS);
  await pushAll(mirrored);
  await served.stop();
  const head = headIn((await served.run(["seal"])).stderr);
  await Promise.all(STALLS.map(({ name, change, reported }, number) => {
    const changeOf = (connection: number) =>
      connection === 0 ? change() : (message: string) => message;
    return withProxy(nats, changeOf, async (url) => {
      const restore = ["restore", "--nats", url, join(served.folder, `copy${number}`)];
      const { code, stderr } = await startMirror(restore, PERMISSIONS, RESTORE_MS_MAX).exited;
      assert.equal(code, 0, `${name}: ${stderr}`);
      assert.match(stderr, reported, name);
      assert.equal(headIn(stderr), head, name);
    });
  }));
});

testWithNats("push exits on SIGTERM while NATS is frozen", async (mirrored) => {
  const { nats } = mirrored;
  await appendPayloads(mirrored, "b1", PAYLOADS);
  const pusher = startPush(mirrored);
  await untilPrinted(pusher, ({ stdout }) => stdout.startsWith("6 events"));
  nats.freeze();
  const timer = setTimeout(() => signalChild(pusher.child, "SIGKILL"), PUSH_MS_MAX);
  assert.equal(await end(pusher, "SIGTERM"), 0);
  clearTimeout(timer);
});
