/** A headless Chromium for the test. */
import puppeteer, { type Page } from "puppeteer-core";
import { findProgram } from "../../tools/support/find_program.ts";

const PROGRAM = findProgram("chromium");

/** Options of a test that needs a browser. */
export const NEEDS_CHROMIUM = {
  skip: PROGRAM === null ? "no chromium here; Debian has it as a package" : false,
};

/** Other tests may keep the machine busy. */
const TIMEOUT_MS = 120_000;

/** Runs `use` with an empty page of a browser of its own. */
export async function withPage(use: (page: Page) => Promise<void>): Promise<void> {
  const browser = await puppeteer.launch({
    executablePath: PROGRAM!,
    timeout: TIMEOUT_MS,
    // The sandbox does not start as root or in a container; the page is ours.
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"],
  });
  try {
    const page = await browser.newPage();
    page.setDefaultTimeout(TIMEOUT_MS);
    await use(page);
  } finally {
    await browser.close();
  }
}
