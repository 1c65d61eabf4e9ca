/**
 * `node tests/console/newcomer.ts [FOLDER]`: the way of a newcomer, timed: start, page, upload of a picture, where its bytes lie, the kill of a
 * primary in the view of drills, repaired. Needs Chromium. Takes a picture of each step into FOLDER, if one is given.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { BlobServiceClient } from "@azure/storage-blob";
import type { Page } from "playwright-core";
import { ConsoleBench } from "./browser.ts";

/** A drill on a busy machine waits until every extent has its copies again. */
const drillTimeoutMs = 240_000;
const [folder] = process.argv.slice(2);
if (folder !== undefined) mkdirSync(folder, { recursive: true });

const bench = new ConsoleBench();
const beganMs = performance.now();
let stepMs = beganMs;

async function done(step: string, page?: Page): Promise<void> {
  const nowMs = performance.now();
  process.stdout.write(`${step.padEnd(56)}${((nowMs - stepMs) / 1_000).toFixed(1).padStart(6)} s\n`);
  if (folder !== undefined) await page?.screenshot({ path: join(folder, `${step.replaceAll(/\W+/g, "-")}.png`) });
  // Pictures are not a part of the way.
  stepMs = performance.now();
}

try {
  await bench.up("--fault-rules", "true");
  await done("npm start, until everything serves");
  const { page, origin } = await bench.open("operate");
  await done("stamp console, until the page shows the stamp", page);

  const { connectionString } = await bench.ask({ do: "status" });
  await BlobServiceClient.fromConnectionString(connectionString).getContainerClient("pictures").create();
  await done("a container, by an SDK: the page makes none");

  await page.goto(`${origin}/#/data/devstoreaccount1/blobs/pictures`);
  const buffer = await page.screenshot();
  // More than a row holds, so that the bytes go into a stream of blob data.
  const picture = Buffer.concat([buffer, Buffer.alloc(Math.max(0, 100_000 - buffer.length))]);
  await page.locator("input[type=file]").setInputFiles({ name: "page.png", mimeType: "image/png", buffer: picture });
  await page.getByRole("link", { name: "page.png" }).waitFor();
  await page.getByRole("link", { name: "page.png" }).click();
  await page.locator("main img").first().waitFor();
  await done("a picture is uploaded and shown", page);

  await page.goto(`${origin}/#/extents`);
  await page.getByRole("row").filter({ hasText: "blob-data" }).locator(".chip.primary").first().waitFor();
  await done("the extent of blob data and its three nodes are shown", page);

  await page.goto(`${origin}/#/drills`);
  await page.getByRole("button", { name: "Run kill-primary" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Run it" }).click();
  await page.locator(".timeline li", { hasText: "kill -9" }).first().waitFor({ timeout: drillTimeoutMs });
  await done("the drill has killed the primary", page);
  await page
    .locator(".badge", { hasText: /kept|slow|broken|failed/ })
    .first()
    .waitFor({ timeout: drillTimeoutMs });
  const verdict = await page
    .locator(".badge", { hasText: /kept|slow|broken|failed/ })
    .first()
    .textContent();
  await done(`every extent has its copies again; verdict: ${verdict}`, page);
  process.stdout.write(`${"all of it".padEnd(56)}${((performance.now() - beganMs) / 1_000).toFixed(1).padStart(6)} s\n`);
} finally {
  await bench.close();
}
