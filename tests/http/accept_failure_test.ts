/**
 * The bug: on Deno a client with more connections than the server has descriptors ended the
 * service, because the server gave up at the first failed accept(2).
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { init } from "../../src/commands/init.ts";
import { startServe, withFolder } from "../../tools/support/program.ts";
import { RawConnection } from "../support/raw_client.ts";

const OPEN_FILES_MAX = 64;
const REQUEST = "GET /v1/streams HTTP/1.1\r\nHost: x\r\n\r\n";

/** Opens connections until one fails or there are as many as the server has descriptors. */
async function openTooMany(socketPath: string): Promise<RawConnection[]> {
  const connections: RawConnection[] = [];
  try {
    while (connections.length < OPEN_FILES_MAX) {
      connections.push(await RawConnection.open(socketPath));
    }
  } catch {
    // The server has stopped accepting.
  }
  return connections;
}

test("serve continues after it ran out of descriptors", () =>
  withFolder(async (dir) => {
    await init(dir, () => {});
    const serving = await startServe(dir, { openFilesMax: OPEN_FILES_MAX });
    const socketPath = `${dir}/data/ground.sock`;
    const kept = await RawConnection.open(socketPath);
    await kept.write(REQUEST);
    assert.equal((await kept.readResponse())?.status, 200);

    for (const connection of await openTooMany(socketPath)) connection.destroy();
    await kept.write(REQUEST);
    assert.equal((await kept.readResponse())?.status, 200, "a connection from before is served");
    kept.destroy();

    let response = await serving.fetch("/v1/streams").catch(() => null);
    while (response === null) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      assert.equal(serving.child.exitCode, null);
      response = await serving.fetch("/v1/streams").catch(() => null);
    }
    assert.equal(response.status, 200, "a new one is served again");
    await response.arrayBuffer();
    assert.equal((await serving.stop()).code, 0);
  }));
