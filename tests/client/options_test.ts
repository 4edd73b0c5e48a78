/** Options that do not exist are refused: JavaScript would ignore them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { EventLogClient } from "../../src/client/event_log_client.ts";
import { collect } from "./support/fake_service.ts";

const client = new EventLogClient(() => assert.fail("nothing is sent"));
/** As JavaScript sees it. */
const untyped = client as unknown as Record<string, (options: object) => unknown>;
const reading = (method: string, options: object) => () =>
  collect(untyped[method]!(options) as AsyncIterable<unknown>);

const MISTAKES: [call: () => unknown, message: string][] = [
  [reading("replay", { record_key: "42" }), "replay() has no option record_key; use recordKey"],
  [reading("replayPages", { Source: "a" }), "replay() has no option Source; use source"],
  [reading("follow", { record_key: "4" }), "follow() has no option record_key; use recordKey"],
  [reading("followRecords", { onreconnect: 0 }), "follow() has no option onreconnect; use onRe"],
  [() => untyped.streams!({ stream: "a" }), "streams() has no option stream; use one of source, s"],
  [() => untyped.append!({ batch_id: "1" }), "append() has no option batch_id; use batchId"],
  [
    () => new EventLogClient(fetch, { attempts_max: 1 } as object),
    "EventLogClient has no option attempts_max; use attemptsMax",
  ],
];

for (const [call, message] of MISTAKES) {
  test(`the client refuses a wrong name: ${message.slice(0, 60)}`, async () => {
    const error = await Promise.resolve().then(call).catch((error) => error);
    assert(error instanceof TypeError, String(error));
    assert.ok(error.message.startsWith(message), error.message);
  });
}
