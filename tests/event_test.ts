import assert from "node:assert/strict";
import { test } from "node:test";
import * as whole from "../mod.ts";
import * as browserPart from "../event.ts";

test("mod.ts exports everything that event.ts exports", () => {
  for (const [name, value] of Object.entries(browserPart)) {
    assert.equal(whole[name as keyof typeof whole], value, name);
  }
});
