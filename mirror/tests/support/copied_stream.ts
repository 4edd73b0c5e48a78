/** Copies a stream, with messages changed or left out. */
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { MsgHdrs } from "@nats-io/transport-node";
import {
  ATOMIC_COMMIT,
  ATOMIC_ID,
  ATOMIC_SEQUENCE,
  EXPECTED_LAST_SEQUENCE,
} from "../../nats/stream.ts";
import { subjectOf } from "../../nats/subject.ts";
import type { NatsServer } from "./nats_server.ts";
import { STREAM } from "./nats_stream.ts";

/** Headers that apply only when a message is first published. */
const OF_ITS_PUBLISHER = [EXPECTED_LAST_SEQUENCE, ATOMIC_ID, ATOMIC_SEQUENCE, ATOMIC_COMMIT];

export interface StoredMessage {
  headers: MsgHdrs;
  data: string;
}

/** @param change Returns the message to store in place of message `seq`, or null to omit it. */
export async function copyStream(
  nats: NatsServer,
  name: string,
  change: (message: StoredMessage, seq: number) => StoredMessage | null,
): Promise<void> {
  const connection = await nats.connect();
  const { streams } = await jetstreamManager(connection);
  await streams.add({ name, subjects: [`${name}.>`] });
  const client = jetstream(connection);
  const { last_seq: last } = (await streams.info(STREAM)).state;
  for (let seq = 1; seq <= last; seq++) {
    const { header, data } = (await streams.getMessage(STREAM, { seq }))!;
    for (const name of OF_ITS_PUBLISHER) header.delete(name);
    const changed = change({ headers: header, data: new TextDecoder().decode(data) }, seq);
    if (changed === null) continue;
    const subject = subjectOf(name, JSON.parse(changed.data));
    await client.publish(subject, changed.data, { headers: changed.headers });
  }
}
