/**
 * `node tests/console/measure.ts`: prints what the console costs: size of the page, first paint, memory, and processor time of the console and
 * of the stamp without a page and with ten, each over a minute. Needs Chromium and Linux.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { BrowserContext } from "playwright-core";
import { ConsoleBench, openBrowser } from "./browser.ts";
import { consoleOf, mebibytesOf, secondsOf } from "./processes.ts";

const pages = 10;
const spanMs = 60_000;
const loads = 5;

const say = (text: string): void => void process.stdout.write(`${text}\n`);

async function partOf(pids: readonly number[]): Promise<number> {
  const before = pids.reduce((sum, pid) => sum + secondsOf(pid), 0);
  const startMs = performance.now();
  await sleep(spanMs);
  const spent = pids.reduce((sum, pid) => sum + secondsOf(pid), 0) - before;
  return (100_000 * spent) / (performance.now() - startMs);
}

const bench = new ConsoleBench();
const browser = await openBrowser();
try {
  await bench.up();
  bench.start();
  const context: BrowserContext = await browser.newContext();
  const page = await context.newPage();
  const link = await bench.link();
  await page.goto(link);
  await page.locator(".health h2").waitFor();
  const { origin } = new URL(link);
  let bytes = 0;
  for (const path of ["/", "/main.js", "/main.css"]) {
    const answer = await fetch(`${origin}${path}`, { headers: { "Accept-Encoding": "br" }, method: "GET" });
    const whole = (await answer.arrayBuffer()).byteLength;
    const sent = Number(answer.headers.get("content-length"));
    say(`${path}: ${(sent / 1_024).toFixed(1)} KiB compressed, ${(whole / 1_024).toFixed(1)} KiB`);
    bytes += sent;
  }
  say(`all: ${(bytes / 1_024).toFixed(1)} KiB compressed`);
  const paints: number[] = [];
  for (let load = 0; load < loads; load++) {
    await page.reload();
    await page.locator(".health h2").waitFor();
    paints.push(await page.evaluate(`performance.getEntriesByName("first-contentful-paint")[0].startTime`));
  }
  say(`first paint: ${paints.map((ms) => Math.round(ms)).join(", ")} ms`);
  const pids = (await bench.ask({ do: "status" })).processes.flatMap(({ pid }) => (pid === null ? [] : [pid]));
  const own = consoleOf(bench.dataDir);
  await page.close();
  await sleep(10_000);
  say(`no page: console ${(await partOf([own])).toFixed(1)}%, then stamp ${(await partOf(pids)).toFixed(1)}% of a processor`);
  for (let tab = 0; tab < pages; tab++) await (await context.newPage()).goto(`${origin}/#/topology`);
  await sleep(10_000);
  say(`${pages} pages: console ${(await partOf([own])).toFixed(1)}%, then stamp ${(await partOf(pids)).toFixed(1)}% of a processor`);
  say(`memory of the console: ${Math.round(mebibytesOf(own))} MiB`);
} finally {
  await browser.close();
  await bench.close();
}
