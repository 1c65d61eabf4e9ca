/** Ranges in the console, in a real Chromium on a real stamp: their load over keys and time, one range, and load balancing with reasons. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { BlobServiceClient } from "@azure/storage-blob";
import type { Page } from "playwright-core";
import { ConsoleBench, controlsOf, hostileNames, skip, violationsIn } from "./browser.ts";

const [hostile] = hostileNames as [string];

const step = { kind: "move", range: hostile, to: hostile, why: hostile, failure: "", atMs: null };

describe("ranges in the console", { skip }, () => {
  const bench = new ConsoleBench();
  let page: Page;
  const { button, confirm, dialog } = controlsOf(() => page);
  let origin = "";
  /** Range that the split made. */
  let below = "";

  before(async () => {
    await bench.up();
    ({ page, origin } = await bench.open("operate"));
  });
  after(() => bench.close());

  const show = (...path: readonly string[]): Promise<unknown> => page.goto(`${origin}/#/${["ranges", ...path].join("/")}`);

  test("all and one, with their load and what would be changed; axe finds no violation, light and dark, wide and narrow", async () => {
    for (const colours of ["light", "dark"]) {
      await page.getByLabel("Colours").selectOption(colours);
      for (const width of [400, 1_280]) {
        await page.setViewportSize({ width, height: 900 });
        await show();
        await page.getByRole("img", { name: /^Requests per second of each range/ }).waitFor();
        await page.getByText("Load and size are even enough").waitFor();
        assert.deepEqual(await violationsIn(page), [], `${colours} ${width}`);
        await show("blob-1");
        await page.getByRole("heading", { name: "blob-1" }).waitFor();
        await page.getByRole("img", { name: /^Requests of the last hour/ }).waitFor();
        assert.deepEqual(await violationsIn(page), [], `one range, ${colours} ${width}`);
        assert.equal(await page.evaluate("document.documentElement.scrollWidth"), width);
      }
    }
  });

  test("the map is read with the keyboard alone, and Enter opens the range", async () => {
    await show();
    const map = page.getByRole("img", { name: /^Requests per second of each range/ });
    await map.focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowUp");
    const told = await page.locator(".heat figcaption [aria-live]").textContent();
    assert.match(told ?? "", /^\d\d:\d\d:\d\d, account-1: [\d.,]+\/s$/);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "account-1" }).waitFor();
    await page.goBack();
    await page.getByRole("list").getByRole("link", { name: "blob-1", exact: true }).click();
    await page.getByText("end of the table").waitFor();
  });

  test("reasons of load balancing are shown, hostile ones as text; so is why nothing is begun", async () => {
    const done = [
      { ...step, kind: "split", to: "", why: "2,400 requests a second", atMs: Date.now() - 60_000 },
      { ...step, failure: `busy ${hostile}`, atMs: Date.now() },
    ];
    const answer = { isAutomatic: true, waitsFor: [hostile], planned: [step], done };
    await page.route("**/api/balance?", (route) => route.fulfill({ json: answer }));
    const loads = [0, null, 900];
    const band = { table: hostile, lowKey: hostile, highKey: hostile, firstRange: hostile, lastRange: hostile, ranges: 1, loads };
    await page.route("**/api/heat?*", (route) =>
      route.fulfill({
        json: { columnMs: 30_000, columns: [0, 30_000, 90_000], bands: [band, { ...band, firstRange: "a", lastRange: "b", ranges: 9 }] },
      }),
    );
    await show();
    await page.getByText(`Nothing is begun by itself now: ${hostile}`).waitFor();
    await page.getByText("2,400 requests a second").waitFor();
    await page.getByText(`busy ${hostile}`).waitFor();
    await page.getByRole("link", { name: "a … b (9)" }).waitFor();
    await page.getByText("900/s").waitFor();
    assert.equal(await page.locator("main img, main script").count(), 0);
    assert.equal(await page.evaluate("document.documentElement.scrollWidth"), 1_280);
    assert.deepEqual(await violationsIn(page), []);
    await page.unroute("**/api/heat?*");
    await page.unroute("**/api/balance?");
  });

  test("a manager that does not answer, and a range that is gone, are told in words", async () => {
    await page.route("**/api/balance?", (route) => route.fulfill({ status: 503, json: { message: `no leader: ${hostile}` } }));
    await show("no-such-range");
    await page.getByText(`no leader: ${hostile}`).waitFor();
    await page.getByText("It was split or merged, and its keys have other ranges").waitFor();
    await page.unroute("**/api/balance?");
    await page.getByText("no leader").waitFor({ state: "detached" });
    assert.deepEqual(bench.problems, []);
  });

  test("a range is moved, split and merged again; a refusal stays in the dialog", async () => {
    await show("entity-1");
    await button("Move").click();
    await dialog().getByLabel("To").selectOption({ index: 1 });
    assert.deepEqual(await violationsIn(page), []);
    await confirm("Move");
    await page.getByText(/^entity-1 is served by /).waitFor();
    assert.equal(await button("Merge").count(), 0, "no range is above the only one of its table");
    await button("Split").focus();
    await page.keyboard.press("Enter");
    await dialog().getByRole("button", { name: "Split", exact: true }).click();
    // A table without rows has no key to be split at.
    await dialog().getByRole("alert").waitFor();
    await page.keyboard.press("Escape");
    await dialog().waitFor({ state: "detached" });
    const { connectionString } = await bench.ask({ do: "status" });
    const container = BlobServiceClient.fromConnectionString(connectionString).getContainerClient("files");
    await container.create();
    for (let number = 0; number < 20; number++) await container.getBlockBlobClient(`blob-${number}`).upload("words", 5);
    await show("blob-1");
    await button("Split").click();
    await confirm("Split");
    const told = page.getByRole("status");
    await told.getByText(/^blob-1 is split\. Writes waited for/).waitFor();
    await told.getByRole("link").first().click();
    await page.waitForURL(/#\/ranges\/(?!blob-1$)/);
    below = page.url().replace(/.*\//, "");
    await button("Merge").click();
    await confirm("Merge");
    await told.getByText("and its neighbour above are one range").waitFor();
    await told.getByRole("link").first().click();
    await page.getByText("end of the table").waitFor();
    assert.deepEqual(bench.problems, []);
  });

  test("a session without the role sees no buttons; its calls are refused, and all is in the audit log", async () => {
    await bench.stop();
    bench.start();
    const other = await bench.signedIn();
    await other.goto(`${new URL(other.url()).origin}/#/ranges/entity-1`);
    await other.getByText("may not split, merge or move ranges").waitFor();
    await other.getByRole("heading", { name: "entity-1" }).waitFor();
    assert.equal(await other.getByRole("button", { name: "Split" }).count(), 0);
    const status = await other.evaluate(`fetch("/api/split-range", {
      method: "POST",
      body: JSON.stringify({ range: "entity-1" }),
      headers: { "X-Stamp-Key": localStorage.getItem("key") },
    }).then(({ status }) => status)`);
    assert.equal(status, 403);
    const stamp = [join(import.meta.dirname, "../../stamp.mjs"), "logs", "--audit", "--json", "--data", bench.dataDir];
    const lines = execFileSync(process.execPath, stamp, { encoding: "utf8" }).trim().split("\n");
    const told = lines
      .map((line) => JSON.parse(line) as { readonly msg: string; readonly result: string; readonly target?: { readonly range?: string } })
      .filter(({ msg }) => msg.includes("range"))
      .map(({ msg, result, target }) => `${msg} ${target?.range ?? ""} ${result.split(":")[0]}`);
    assert.deepEqual(told, [
      "audit: move range entity-1 done",
      "audit: split range entity-1 failed",
      "audit: split range blob-1 done",
      `audit: merge range ${below} done`,
      "audit: split range  refused",
    ]);
    assert.deepEqual(bench.problems, []);
  });
});
