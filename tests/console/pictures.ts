/**
 * `node tests/console/pictures.ts`: takes the pictures of the console for README and guide, every view light and dark: of a small stamp under a
 * light load, during a drill, and of two stamps. Needs Chromium. Prints the size of each picture.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { BlobServiceClient } from "@azure/storage-blob";
import { reservePorts } from "@stamp/cluster";
import type { Page } from "playwright-core";
import { ConsoleBench, openBrowser } from "./browser.ts";

const folder = join(import.meta.dirname, "../../docs/pictures");
const quality = 70;
const writers = 3;
const viewport = { width: 1_240, height: 860 };

/** Playwright takes no WebP, whose pictures have half the size. */
async function take(page: Page, name: string): Promise<void> {
  for (const colours of ["light", "dark"]) {
    await page.getByLabel("Colours").selectOption(colours);
    await sleep(400);
    const session = await page.context().newCDPSession(page);
    const { data } = await session.send("Page.captureScreenshot", { format: "webp", quality });
    await session.detach();
    const bytes = Buffer.from(data, "base64");
    writeFileSync(join(folder, `console-${name}-${colours}.webp`), bytes);
    process.stdout.write(`${name} ${colours}: ${Math.ceil(bytes.length / 1_024)} KiB\n`);
  }
}

const browser = await openBrowser();

async function openPage(bench: ConsoleBench): Promise<{ readonly page: Page; readonly show: (path: string) => Promise<void> }> {
  bench.start("127.0.0.1:0", "operate");
  const page = await (await browser.newContext({ viewport })).newPage();
  const link = await bench.link();
  await page.goto(link);
  await page.locator(".health h2").waitFor();
  const show = async (path: string): Promise<void> => {
    await page.goto(new URL(`/#/${path}`, link).href);
    await sleep(2_500);
  };
  return { page, show };
}

async function oneStamp(): Promise<void> {
  const bench = new ConsoleBench();
  const ended = new AbortController();
  try {
    await bench.up("--fault-rules", "true");
    const { connectionString } = await bench.ask({ do: "status" });
    const { page, show } = await openPage(bench);
    const container = BlobServiceClient.fromConnectionString(connectionString).getContainerClient("photos");
    await container.create();
    const load = Promise.all(
      Array.from({ length: writers }, async (_, writer) => {
        for (let number = 0; !ended.signal.aborted; number++) {
          const blob = container.getBlockBlobClient(`${writer}/${number}.txt`);
          await blob.upload("x".repeat(4_096), 4_096).catch(() => undefined);
          await blob.downloadToBuffer().catch(() => undefined);
          await sleep(30 + 25 * Math.sin(number / 20));
        }
      }),
    );
    await sleep(20_000);
    for (const view of ["topology", "processes", "nodes", "streams", "extents", "ranges", "events"]) {
      await show(view);
      await take(page, view);
    }
    await show("data/devstoreaccount1/blobs/photos");
    await take(page, "data");
    await show("accounts/devstoreaccount1");
    await take(page, "accounts");
    await show("drills");
    await page.getByRole("button", { name: "Run kill-primary" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Run it" }).click();
    await page.locator(".timeline li", { hasText: "kill -9" }).first().waitFor({ timeout: 60_000 });
    await sleep(4_000);
    await take(page, "drills");
    await show("");
    await take(page, "overview");
    ended.abort();
    await load;
    await show("drills");
    await page.locator(".notice[role=status]").waitFor({ timeout: 120_000 });
  } finally {
    ended.abort();
    await bench.close();
  }
}

async function twoStamps(): Promise<void> {
  const both = mkdtempSync(join(tmpdir(), "stamp-console-two-"));
  const bench = new ConsoleBench(join(both, "north-1"));
  const stamp = (...args: readonly string[]): void => {
    execFileSync(process.execPath, [join(import.meta.dirname, "../../stamp.mjs"), ...args, "--data", both], { stdio: "ignore" });
  };
  const ports = await reservePorts();
  await ports.release();
  try {
    stamp("up", "-d", "--stamps", "2", "--port-base", String(ports.portBase), "--ready-timeout-s", "180");
    stamp("account", "create", "acme", "--location", "north", "--geo", "south");
    const { page, show } = await openPage(bench);
    await show("geo");
    await page.getByRole("cell", { name: "protected" }).waitFor({ timeout: 120_000 });
    await sleep(30_000);
    await take(page, "geo");
  } finally {
    await bench.stop();
    stamp("down");
    rmSync(both, { recursive: true, force: true });
  }
}

try {
  await oneStamp();
  await twoStamps();
} finally {
  await browser.close();
}
