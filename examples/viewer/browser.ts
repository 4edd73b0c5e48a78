/** Runs tests in headless Chromium. */
import puppeteer, { type Page } from "puppeteer-core";
import { findProgram } from "../../tools/support/find_program.ts";

const PROGRAM = findProgram("chromium");

/** Options for a test that needs a browser. */
export const NEEDS_CHROMIUM = {
  skip: PROGRAM === null ? "chromium is not installed (Debian package: chromium)" : false,
};

/** Generous, because other tests may be using the CPU. */
const TIMEOUT_MS = 120_000;

/** Runs `use` with an empty page in a new browser. */
export async function withPage(use: (page: Page) => Promise<void>): Promise<void> {
  const browser = await puppeteer.launch({
    executablePath: PROGRAM!,
    timeout: TIMEOUT_MS,
    // The sandbox fails to start as root or in a container, and the page is trusted.
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
