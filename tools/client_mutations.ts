/** Deliberate bugs in the checks of the client: of positions, and of the socket's path. */
import { edit, type Mutation } from "./support/mutation.ts";

const REPLAY = "tests/client/replay_test.ts";

export const CLIENT_MUTATIONS: readonly Mutation[] = [
  {
    name: "a replay continues from a position that the log has lost",
    edits: [edit(
      "client/replay.ts",
      "    if (after !== null && isDue) await checkPosition(read, after, options);\n",
    )],
    tests: [REPLAY],
  },
  {
    name: "a position whose event is missing is accepted",
    edits: [
      edit("client/position.ts", "if (event === null || !isSame) throw", "if (!isSame) throw"),
    ],
    tests: [REPLAY],
  },
  {
    name: "the hash of a position's event is ignored",
    edits: [edit("client/position.ts", "event?.event_hash === afterHash", "true")],
    tests: [REPLAY],
  },
  {
    name: "a follow continues from a position that the log has lost",
    edits: [edit(
      "client/follow.ts",
      "if (this.#nextAfter !== null) await checkPosition(",
      "if (this.#nextAfter === null) await checkPosition(",
    )],
    tests: ["tests/client/follow_test.ts"],
  },
  {
    name: "a request with a token is sent to TCP port 80 if the socket's path is empty",
    edits: [edit("client/unix_fetch.ts", "  refuseImpossible(socketPath);\n")],
    tests: ["tests/client/unix_fetch_test.ts"],
  },
];
