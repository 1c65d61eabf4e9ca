/** Ranges in the console, in a real Chromium on a real stamp: their load over keys and time, one range, and load balancing with reasons. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Page } from "playwright-core";
import { ConsoleBench, hostileNames, skip, violationsIn } from "./browser.ts";

const [hostile] = hostileNames as [string];

const step = { kind: "move", range: hostile, to: hostile, why: hostile, failure: "", atMs: null };

describe("ranges in the console", { skip }, () => {
  const bench = new ConsoleBench();
  let page: Page;
  let origin = "";

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
});
