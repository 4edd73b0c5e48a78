/** Tests the viewer in a real browser against a served deployment. */
import assert from "node:assert/strict";
import { request } from "node:http";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import type { Page } from "puppeteer-core";
import { EventLogClient, type SubmittedEvent } from "../../mod.ts";
import { spawnScript, untilPrinted } from "../../tools/support/program.ts";
import { type Deployment, withServing } from "../../tests/support/deployment.ts";
import { NEEDS_CHROMIUM, withPage } from "./browser.ts";

const SERVER = fileURLToPath(new URL("server.ts", import.meta.url));

/** Returns `count` events for five records. */
function orders(count: number, first = 0): SubmittedEvent[] {
  return Array.from({ length: count }, (_, index) => ({
    stream: index % 2 === 0 ? "orders" : "returns",
    record_key: `r${index % 5}`,
    kind: "upserted",
    payload: { at: first + index, "€": [1e21, null], text: "<b>\u2028</b>" },
  }));
}

async function append({ serving }: Deployment, batchId: string, events: SubmittedEvent[]) {
  await new EventLogClient(serving.fetch).append({ source: "shop", batchId, events });
}

/** Runs `use` with the URL of a running viewer. */
async function withViewer(
  { socketPath }: Deployment,
  use: (url: string) => Promise<void>,
): Promise<void> {
  const viewer = spawnScript(SERVER, ["--socket", socketPath, "--port", "0"]);
  try {
    await untilPrinted(viewer, ({ stdout }) => stdout.includes("\n"));
    await use(viewer.output.stdout.trim());
  } finally {
    viewer.child.kill();
    await viewer.exited;
  }
}

/** Waits until an element's text matches. */
async function untilShown(page: Page, selector: string, pattern: RegExp): Promise<void> {
  await page.waitForFunction(
    (where, source) => new RegExp(source).test(document.querySelector(where)?.textContent ?? ""),
    {},
    selector,
    pattern.source,
  ).catch(async (error) => {
    const text = await page.$eval(selector, ({ textContent }) => textContent).catch(() =>
      "nothing"
    );
    throw new Error(`${selector} shows ${text}, expected ${pattern}`, { cause: error });
  });
}

function textsOf(page: Page, selector: string): Promise<(string | null)[]> {
  return page.$$eval(selector, (found) => found.map(({ textContent }) => textContent));
}

/** Defines a test that fails on uncaught page errors. `open` waits until the page is connected. */
function testPage(
  title: string,
  use: (served: Deployment, page: Page, open: () => Promise<void>) => Promise<void>,
): void {
  test(
    title,
    NEEDS_CHROMIUM,
    () =>
      withServing((served) =>
        withViewer(served, (url) =>
          withPage(async (page) => {
            const faults: string[] = [];
            page.on("pageerror", (error) => faults.push(String(error)));
            // A lost service is reported there too.
            page.on("console", (message) => {
              const isRefused = message.type() === "error" && /violates/.test(message.text());
              if (isRefused) faults.push(message.text());
            });
            await use(served, page, async () => {
              await page.goto(url);
              await untilShown(page, "#connection", /^Live$/);
            });
            assert.deepEqual(faults, []);
          }))
      ),
  );
}

testPage(
  "the viewer shows and verifies committed events, before and after the service is killed",
  async (served, page, open) => {
    await append(served, "1", orders(1000));
    await open();
    await untilShown(page, "#totals", /^200 of 1,000 events seen, all verified$/);
    await untilShown(page, "#minutes-summary", /: 1,000 events/);
    await untilShown(page, "#streams", /^shoporders500.*shopreturns500/);

    for (let second = 0; second < 10; second++) {
      await append(served, `live ${second}`, orders(200, 1000 + second * 200));
    }
    await untilShown(page, "#totals", /^2,200 of 3,000 events seen, all verified$/);
    await untilShown(page, "#streams", /^shoporders1,500.*shopreturns1,500/);
    await untilShown(page, "#minutes-summary", /: 3,000 events/);
    await untilShown(page, "#events", /"at":2999/);
    const marks = await page.$$eval(
      "#events .mark",
      (found) => found.map((mark) => mark.getAttribute("aria-label")),
    );
    assert.deepEqual(marks, Array(200).fill("hashes match"));

    await served.stop("SIGKILL");
    await untilShown(page, "#connection", /^Not connected: /);
    await served.start();
    await append(served, "after", orders(3, 3000));
    await untilShown(page, "#connection", /^Live$/);
    await untilShown(page, "#totals", /^2,203 of 3,003 events seen, all verified$/);
    await untilShown(page, "#events", /"at":3002/);
  },
);

testPage(
  "the viewer's pause button, record history and lookup work from the keyboard, at a low max_limit",
  async (served, page, open) => {
    await served.stop();
    await served.configure("default_limit = 1000", "default_limit = 100");
    await served.configure("max_limit = 100000", "max_limit = 100");
    await served.start();
    await append(served, "1", orders(10));
    await open();
    await untilShown(page, "#events", /"at":9/);

    await page.focus("#pause");
    await page.keyboard.press("Space");
    await append(served, "2", orders(10, 10));
    await untilShown(page, "#newer", /^10 newer events$/);
    await page.keyboard.press("Space");
    await untilShown(page, "#events", /"at":19/);

    await page.focus("#events tr:first-child button");
    await page.keyboard.press("Enter");
    await untilShown(page, "#history-heading", /^History of shop \/ returns \/ r4$/);
    await untilShown(page, "#history-summary", /^2 events, oldest first$/);
    assert.match((await textsOf(page, "#history-events pre")).join(), /"at": 9,.*"at": 19,/s);
    await append(served, "3", orders(1, 20));
    await page.keyboard.press("Escape");
    assert.equal(await page.$eval(":focus", ({ textContent }) => textContent), "r4");
    await untilShown(page, "#held", /^The list is paused$/);

    await page.focus("#lookup input");
    for (const word of ["shop", "orders", "r0"]) {
      await page.keyboard.type(word);
      await page.keyboard.press("Tab");
    }
    await page.keyboard.press("Enter");
    await untilShown(page, "#history-summary", /^3 events, oldest first$/);
    const tree = JSON.stringify(await page.accessibility.snapshot());
    for (const name of ["hashes match", "Close"]) assert.ok(tree.includes(name), name);
  },
);

testPage(
  "the viewer filters by source and stream, and labels its axes",
  async (served, page, open) => {
    await append(served, "1", orders(1000));
    await open();
    await page.focus("#filter-stream");
    await page.keyboard.type("returns");
    await page.keyboard.press("Enter");
    await untilShown(page, "#totals", /^200 of 500 events seen, all verified$/);
    await untilShown(page, "#minutes-summary", /: 500 events/);
    await untilShown(page, "#streams", /^shopreturns500/);
    assert.match(page.url(), /\?stream=returns$/);
    assert.ok(
      (await textsOf(page, "#events td:nth-child(3)")).every((text) => text === "shop / returns"),
    );
    assert.equal((await textsOf(page, "#minutes-counts span")).at(-1), "0");
    assert.equal((await textsOf(page, "#minutes-times span")).length, 5);
  },
);

/**
 * Alters a payload in responses, like an attacker who edits files and recomputes their checksums.
 */
const ALTERING = `
  const plain = window.fetch;
  window.fetch = async (...args) => {
    const response = await plain(...args);
    const alter = new TransformStream({
      transform: (text, next) => next.enqueue(text.replaceAll('"at":7', '"at":8')),
    });
    const body = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(alter)
      .pipeThrough(new TextEncoderStream());
    return new Response(body, response);
  };`;

testPage(
  "the viewer flags an event with an altered payload, in both color schemes",
  async (served, page, open) => {
    await append(served, "1", orders(10));
    await page.evaluateOnNewDocument(ALTERING);
    await open();
    await untilShown(page, "#totals", /^10 of 10 events seen, 1 altered$/);
    await untilShown(page, "#alarm", /was altered: the payload does not match content_hash/);
    await untilShown(page, "#events", /✗/);
    const colors = [];
    for (const value of ["light", "dark"]) {
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value }]);
      colors.push(await page.$eval("body", (body) => getComputedStyle(body).backgroundColor));
    }
    assert.notEqual(colors[0], colors[1]);
  },
);

/** Sends a request. @returns the status code of the response. */
function statusOf(
  url: string,
  path: string,
  method: string,
  headers: Record<string, string> = {},
): Promise<number> {
  return new Promise((resolve, reject) => {
    request(new URL(path, url), { method, headers }, (response) => {
      response.resume();
      resolve(response.statusCode!);
    }).on("error", reject).end();
  });
}

/** Runs the viewer and expects exit status 1. @returns its standard error. */
async function failureOf(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await spawnScript(SERVER, args).exited;
  assert.deepEqual([code, stdout], [1, ""]);
  return stderr;
}

test("the viewer does not start with a wrong socket or a port that is in use", () =>
  withServing((served) =>
    withViewer(served, async (url) => {
      const wrong = await failureOf(`${served.socketPath}.none`, "--port", "0", "--wait", "0");
      assert.match(wrong, /^.*connection to .*ground\.sock\.none failed: .*ENOENT.*\n$/);
      const { port } = new URL(url);
      const busy = await failureOf(served.socketPath, "--port", port);
      assert.equal(busy, `port ${port} is in use; choose another with --port\n`);
    })
  ));

test("the viewer's server is read-only, serves only its own paths and rejects other hosts", () =>
  withServing((served) =>
    withViewer(served, async (url) => {
      assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/$/);
      for (
        const path of ["/", "/viewer.css", "/event.ts", "/v1/streams", "/v1/events", "/minutes"]
      ) {
        assert.equal(await statusOf(url, path, "GET"), 200, path);
        assert.equal(await statusOf(url, path, "POST"), 405, path);
        assert.equal(await statusOf(url, path, "GET", { host: "attacker.example" }), 403, path);
        for (const site of ["cross-site", "same-site"]) {
          assert.equal(await statusOf(url, path, "GET", { "sec-fetch-site": site }), 403, path);
        }
        const origin = "http://attacker.example";
        assert.equal(await statusOf(url, path, "GET", { origin }), 403, path);
      }
      const kept = ["/v1/sources/retire", "/deno.json", "/src/event/../../README.md", "/cli.ts"];
      for (const path of [...kept, "/src/event/none.ts"]) {
        assert.equal(await statusOf(url, path, "GET"), 404, path);
      }
      await served.stop();
      for (const path of ["/v1/streams", "/minutes"]) {
        assert.equal(await statusOf(url, path, "GET"), 502, path);
      }
    })
  ));
