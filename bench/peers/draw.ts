/**
 * Draws the chart from this benchmark's result files, one per server runtime:
 * `node bench/peers/draw.ts CHART.svg RESULT.json...`.
 */
import { readFile, writeFile } from "node:fs/promises";
import process from "node:process";
import { runBench } from "../support/options.ts";
import { drawChart } from "./chart.ts";

await runBench(async () => {
  const [chart, ...results] = process.argv.slice(2);
  if (chart === undefined || results.length === 0) {
    throw new Error("usage: draw.ts CHART.svg RESULT.json...");
  }
  const texts = await Promise.all(results.map((path) => readFile(path, "utf8")));
  await writeFile(chart, drawChart(texts.map((text) => JSON.parse(text))));
});
