/**
 * Measures which costs grow with the log. Builds logs of several sizes, seals them and sends each
 * the same requests. The table shows the results side by side. See README.md in this directory.
 */
import { askLog, PARTS } from "./scale/ask.ts";
import { fillTail, withBuiltLog } from "./scale/build.ts";
import type { Figures } from "./scale/questions.ts";
import { parseBenchOptions, positive, progress, runBench } from "./support/options.ts";
import { publish, rounded, type Row } from "./support/report.ts";

/** Returns a row per figure with a column per log, and the last log's figure over the first's. */
function sideBySide(columns: { name: string; figures: Figures }[]): Row[] {
  const [first, last] = [columns[0]!.figures, columns.at(-1)!.figures];
  return Object.keys(first).map((row) => ({
    row,
    ...Object.fromEntries(columns.map(({ name, figures }) => [name, figures[row] ?? null])),
    "last/first": first[row] && last[row] ? rounded(last[row] / first[row], 2) : null,
  }));
}

await runBench(async () => {
  const defaults = { events: "1e5,1e6,1e7" };
  const options = parseBenchOptions(PARTS, defaults, ["shape", "keep", "tail-mb"]);
  const { sizes, own: { shape = "batch", "tail-mb": tailMb = "56" } } = options;
  const columns: { name: string; figures: Figures }[] = [];
  for (const events of sizes) {
    // The key is not a bare number, because objects list integer-like keys first.
    const name = `${events.toLocaleString("en")} events`;
    const figures = await withBuiltLog(options, events, async (log) => {
      await fillTail(log, positive("--tail-mb", tailMb) * 1e6);
      progress(`measuring the log of ${events} events`);
      return await askLog(log, options);
    });
    columns.push({ name, figures });
  }
  await publish(`scale, shape ${shape}`, options, sideBySide(columns));
});
