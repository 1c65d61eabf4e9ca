/** The picture of the stamp in a real Chromium: a killed process is marked, the words say the same, hostile names, narrow windows. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Page } from "playwright-core";
import { ConsoleBench, hostileNames, skip, violationsIn } from "./browser.ts";
import { showHostile } from "./hostile-stamp.ts";

describe("topology in the console", { skip }, () => {
  const bench = new ConsoleBench();
  let page: Page;
  let origin = "";

  before(async () => {
    await bench.up();
    ({ page, origin } = await bench.open("read"));
  });
  after(() => bench.close());

  test("every process is drawn and in the table, with who leads; axe finds no violation, light and dark, wide and narrow", async () => {
    const { processes } = await bench.ask({ do: "status" });
    for (const colours of ["light", "dark"]) {
      await page.getByLabel("Colours").selectOption(colours);
      for (const width of [400, 1_280, 2_560]) {
        await page.setViewportSize({ width, height: 900 });
        await page.goto(`${origin}/#/topology`);
        for (const { name } of processes) await page.locator(".topology .process", { hasText: name }).waitFor();
        assert.equal(await page.locator("tbody tr").count(), processes.length);
        await page.locator(".topology .process", { hasText: "★ leads" }).first().waitFor();
        await page.locator("tbody tr", { hasText: "leader, leads" }).first().waitFor();
        assert.deepEqual(await violationsIn(page), [], `${colours} ${width}`);
        assert.equal(await page.evaluate("document.documentElement.scrollWidth"), width);
      }
    }
  });

  test("the table is reached and followed with the keyboard; the picture holds no tab stop", async () => {
    await page.goto(`${origin}/#/topology`);
    await page.locator(".topology .process").first().waitFor();
    assert.equal(await page.locator(".topology a:not([tabindex='-1'])").count(), 0);
    await page.getByRole("link", { name: "extent-node-1", exact: true }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "extent-node-1" }).waitFor();
  });

  test("a process that is killed is marked in the picture, told to screen readers and in the table", async (context) => {
    await page.goto(`${origin}/#/topology`);
    await page.locator(".topology .process.good", { hasText: "extent-node-2" }).waitFor();
    const startMs = performance.now();
    await bench.ask({ do: "signal", name: "extent-node-2", signal: "SIGKILL" });
    await page.locator(".topology .process.bad", { hasText: "extent-node-2" }).waitFor();
    context.diagnostic(`seen ${Math.round(performance.now() - startMs)} ms after the kill`);
    await page.locator("[aria-live] .notice", { hasText: "extent-node-2" }).waitFor();
    await page.locator("tbody tr", { hasText: "extent-node-2" }).getByText("ended").waitFor();
    assert.deepEqual(await violationsIn(page), []);
    await page.locator(".topology .process.good", { hasText: "extent-node-2" }).waitFor();
  });

  test("hostile names are shown as text and cut off, in a narrow window, too", async () => {
    await page.setViewportSize({ width: 400, height: 900 });
    await showHostile(page, "topology");
    await page.locator(".topology .process", { hasText: hostileNames[0] as string }).waitFor();
    for (const name of hostileNames) await page.getByRole("link", { name, exact: true }).waitFor();
    assert.equal(await page.locator("main img, main script").count(), 0);
    assert.equal(await page.evaluate("document.documentElement.scrollWidth"), 400);
    assert.deepEqual(bench.problems, []);
  });
});
