/** `node tests/console/pictures.ts`: takes the pictures of the console for README and guide, of a small stamp under a light load. Needs Chromium. */
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { BlobServiceClient } from "@azure/storage-blob";
import { ConsoleBench, openBrowser } from "./browser.ts";

const folder = join(import.meta.dirname, "../../docs/pictures");
const loadMs = 35_000;
const writers = 3;

const bench = new ConsoleBench();
await bench.up();
const { connectionString } = await bench.ask({ do: "status" });
bench.start();
const browser = await openBrowser();
try {
  const page = await browser.newPage({ viewport: { width: 1_240, height: 860 }, colorScheme: "light" });
  const link = await bench.link();
  await page.goto(link);
  await page.locator(".health h2").waitFor();
  const container = BlobServiceClient.fromConnectionString(connectionString).getContainerClient("photos");
  await container.create();
  const endMs = performance.now() + loadMs;
  const load = Promise.all(
    Array.from({ length: writers }, async (_, writer) => {
      for (let number = 0; performance.now() < endMs; number++) {
        const blob = container.getBlockBlobClient(`${writer}/${number}`);
        await blob.upload("x".repeat(4_096), 4_096);
        await blob.downloadToBuffer();
        await sleep(30 + 25 * Math.sin(number / 20));
      }
    }),
  );
  await sleep(loadMs / 2);
  await bench.ask({ do: "signal", name: "extent-node-3", signal: "SIGKILL" });
  await sleep(loadMs / 2 - 2_000);
  await page.screenshot({ path: join(folder, "console-overview.png") });
  await page.goto(new URL("/#/extents", link).href);
  await page.getByLabel("Colours").selectOption("dark");
  await page.locator(".chip").first().waitFor();
  await page.screenshot({ path: join(folder, "console-extents.png") });
  await load;
} finally {
  await browser.close();
  await bench.close();
}
