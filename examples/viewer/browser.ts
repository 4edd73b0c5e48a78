/** A headless Chromium for the test. */
import puppeteer, { type Browser } from "puppeteer-core";
import { findProgram } from "../../tools/support/find_program.ts";

const PROGRAM = findProgram("chromium");

/** Options of a test that needs a browser. */
export const NEEDS_CHROMIUM = {
  skip: PROGRAM === null ? "no chromium here; Debian has it as a package" : false,
};

/** Runs `use` with a browser, and closes it. */
export async function withBrowser(use: (browser: Browser) => Promise<void>): Promise<void> {
  const browser = await puppeteer.launch({
    executablePath: PROGRAM!,
    // The sandbox does not start as root or in a container; the page is ours.
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
  });
  try {
    await use(browser);
  } finally {
    await browser.close();
  }
}
