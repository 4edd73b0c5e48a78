/**
 * A batch of two events and all its hashes, which were computed with Python's hashlib and json,
 * independently of the service's code.
 */
import type { BatchIdentity, HashedEvent } from "../../support/prepared.ts";

export const IDENTITY: BatchIdentity = {
  source: "crm",
  batchId: 'import 7/"\u00e9"',
  observedAt: "2026-01-02T03:04:06.007Z",
};

export const EVENTS: HashedEvent[] = [
  {
    stream: "customers",
    recordKey: 'c/1 "\u00e9"',
    kind: "upserted",
    occurredAt: "2026-01-02T03:04:05.123456789Z",
    payload: '{"active":true,"balance":12.5,"name":"Ada \\"Countess\\" Lovelace","parent":null,' +
      '"tags":["\u00e9","\u{1f600}","\\n"]}',
    contentHash: "0cc43a7761178ba6736fcd7ebfb22fac7f06b3d6cdd4cc36ce34ec9257dbb496",
  },
  {
    stream: "customers",
    recordKey: "c/2",
    kind: "deleted",
    occurredAt: undefined,
    payload: "null",
    contentHash: "74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b",
  },
];

export const BATCH_DIGEST = "9157eec1de575b9f7c41f8efcb90ef3a784b3109c255e94d09d5717564d5b317";
/** The digest of a batch with only the second event. */
export const SINGLE_DIGEST = "3c0fefdc5f389aa6d4d5848ba6406efc1c58ab90d7342dd7ff4161bca487346a";

export const EVENT_IDS = [
  "019b7c4e-2d37-7a01-8f00-000000000001",
  "019b7c4e-2d37-7a01-8f00-000000000002",
];

export const EVENT_HASHES = [
  "6643374ffe6829daae22f83b0f91da023f3f256f82dd17203f2ae130778e0e69",
  "b576c394ea2f53c0e705bea6d3d20da2016d767300ea7490cfb3b86794e6bd1a",
];

/** The chain head after each event. */
export const HEADS = [
  "5bc45451ea844c7ebb02f7b5662c8ae32bb7465afc2a8ccc6663534d3cce9d49",
  "60fa6d44e1d642f38a97ee83b87136ff2c5b2316b7ad987b9cc894ff587132a4",
];
