/** Stamps and copies in the console, in a real Chromium: a stamp alone, then two real ones with an account that fails over as planned and by force. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { reservePorts } from "@stamp/cluster";
import type { Locator, Page } from "playwright-core";
import { ConsoleBench, controlsOf, hostileNames, skip, violationsIn } from "./browser.ts";

const account = "acme";
/** A copy is seeded, and a role changes, while two stamps share few processors. */
const slowMs = 120_000;

describe("geo in the console", { skip }, () => {
  const folder = mkdtempSync(join(tmpdir(), "stamp-console-geo-"));
  const bench = new ConsoleBench(join(folder, "north-1"));
  let page: Page;
  const { button, dialog } = controlsOf(() => page);
  let origin = "";

  const stamp = async (...args: readonly string[]): Promise<string> => {
    const child = spawn(process.execPath, [join(import.meta.dirname, "../../stamp.mjs"), ...args, "--data", folder]);
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text: string) => (output += text));
    const code = await new Promise((resolve) => child.once("close", resolve));
    assert.equal(code, 0, `stamp ${args.join(" ")}: ${output}`);
    return output;
  };

  before(async () => {
    const ports = await reservePorts();
    await ports.release();
    await stamp("up", "-d", "--stamps", "2", "--port-base", String(ports.portBase), "--ready-timeout-s", "180");
    await stamp("account", "create", account, "--location", "north", "--geo", "south");
    ({ page, origin } = await bench.open("operate"));
  });
  after(async () => {
    await bench.closeBrowser();
    await bench.stop();
    await stamp("down");
    rmSync(folder, { recursive: true, force: true });
  });

  const fact = (term: string, value: string | RegExp): Locator =>
    page.locator(".facts div", { hasText: new RegExp(`^${term}`) }).getByText(value, { exact: true });
  /** Repeats a failover until the location service takes it: it refuses one while the copy is seeded, and says so. */
  const failOver = async (submit: string): Promise<void> => {
    const endMs = performance.now() + slowMs;
    await dialog().getByRole("button", { name: submit }).click();
    while ((await dialog().count()) > 0 && performance.now() < endMs) {
      await page.waitForTimeout(1_000);
      const again = dialog().getByRole("button", { name: submit });
      if ((await dialog().count()) > 0 && (await again.getAttribute("aria-disabled")) !== "true") await again.click();
    }
    await dialog().waitFor({ state: "detached" });
  };

  test("stamps and copies with their lag; axe finds no violation, light and dark, wide and narrow", async () => {
    for (const colours of ["light", "dark"]) {
      await page.getByLabel("Colours").selectOption(colours);
      for (const width of [400, 1_280]) {
        await page.setViewportSize({ width, height: 900 });
        await page.goto(`${origin}/#/geo`);
        await page.getByRole("row", { name: account }).getByRole("cell", { name: "south-1" }).waitFor({ timeout: slowMs });
        await page.getByRole("row", { name: "north-1" }).last().waitFor();
        await page.locator(".plot").first().waitFor();
        assert.deepEqual(await violationsIn(page), [], `${colours} ${width}`);
        await page.goto(`${origin}/#/geo/${account}`);
        await page.getByText("No stamp has reported any").waitFor();
        assert.deepEqual(await violationsIn(page), [], `one copy, ${colours} ${width}`);
        assert.equal(await page.evaluate("document.documentElement.scrollWidth"), width);
      }
    }
  });

  test("a dialog of a failover keeps the keyboard inside, begins nothing without a person's word, and gives the focus back", async () => {
    const asked: string[] = [];
    page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    for (const [name, controls] of [
      ["Planned failover", ["Cancel", "Fail over"]],
      ["Forced failover", ["on", "Cancel", "Fail over, and lose that"]],
    ] as const) {
      await button(name).focus();
      await page.keyboard.press("Enter");
      await dialog().waitFor();
      const reached = new Set<string>();
      for (let press = 0; press < 2 * controls.length + 2; press++) {
        const now = await page.evaluate(`(() => {
          const { activeElement: at, body } = document;
          if (at === body) return "";
          return at.closest("dialog") === null ? "outside" : at.value || at.textContent;
        })()`);
        reached.add(String(now));
        await page.keyboard.press("Tab");
      }
      reached.delete("");
      assert.deepEqual([...reached].sort(), [...controls].sort(), name);
      await page.keyboard.press("Escape");
      await dialog().waitFor({ state: "detached" });
      assert.equal(await page.evaluate("document.activeElement.textContent"), name);
    }
    await page.keyboard.press("Enter");
    await dialog().getByRole("checkbox").focus();
    await page.keyboard.press("Enter");
    assert.equal(await dialog().count(), 1, "the box is not checked");
    await page.keyboard.press("Escape");
    assert.ok(!asked.includes("/api/fail-over"));
  });

  test("a planned failover makes the copy the primary", async () => {
    await fact("The copy is complete", "yes").waitFor({ timeout: slowMs });
    await button("Planned failover").click();
    await dialog().getByText("Nothing is lost").waitFor();
    assert.deepEqual(await violationsIn(page), []);
    await failOver("Fail over");
    await fact("Primary", "south-1").waitFor({ timeout: slowMs });
    await fact("Copy", "north-1").waitFor({ timeout: slowMs });
  });

  test("a forced failover says what it would lose, and begins only with a person's word", async () => {
    await fact("Operation under way", "none").waitFor({ timeout: slowMs });
    await fact("The copy is complete", "yes").waitFor({ timeout: slowMs });
    await button("Forced failover").click();
    await dialog()
      .getByText(/^Last Sync Time .* may be lost/)
      .waitFor();
    await dialog()
      .getByText(/the copy lacks \d+ commits/)
      .waitFor();
    assert.deepEqual(await violationsIn(page), []);
    await dialog().getByRole("button", { name: "Fail over, and lose that" }).click();
    assert.equal(
      await dialog()
        .getByRole("checkbox")
        .evaluate((box) => (box as unknown as { validity: { valueMissing: boolean } }).validity.valueMissing),
      true,
    );
    await dialog().getByRole("checkbox").focus();
    await page.keyboard.press("Space");
    await failOver("Fail over, and lose that");
    await fact("Primary", "north-1").waitFor({ timeout: slowMs });
  });

  test("hostile names and words are shown as text; a location service that does not answer is told", async () => {
    const [name = ""] = hostileNames;
    const row = { name, location: name, state: "open", answers: true, trouble: name, usedBytes: 1, totalBytes: 2, accounts: 1 };
    const copy = { name, stamp: name, secondary: name, state: name, isSeeded: true, queues: true, lagSeconds: 1, lag: name, pending: name };
    const geo = { at: name, stamps: [row], copies: [{ ...copy, step: name, trouble: name, loss: name }], more: false };
    const report = { stamp: name, trouble: name, rows: hostileNames.map((each) => Array(6).fill(each)), more: true };
    await page.route("**/api/geo?", (route) => route.fulfill({ json: geo }));
    await page.route("**/api/diverged?*", (route) => route.fulfill({ json: { items: [report], next: null } }));
    await page.goto(`${origin}/#/`);
    await page.goto(`${origin}/#/geo/${encodeURIComponent(name)}`);
    await page.getByRole("heading", { name, exact: true }).waitFor();
    for (const each of hostileNames) await page.getByRole("cell", { name: each, exact: true }).first().waitFor();
    assert.equal(await page.locator("main img, main script").count(), 0);
    await page.unroute("**/api/geo?");
    await page.route("**/api/geo?", (route) => route.fulfill({ status: 503, json: { message: "no location service leads" } }));
    await page.getByText("no location service leads").waitFor();
    await page.unroute("**/api/geo?");
    await page.unroute("**/api/diverged?*");
  });

  test("a console that knows no location service says how to go on", async () => {
    const json = { at: "", stamps: [], copies: [], more: false };
    await page.route("**/api/geo?", (route) => route.fulfill({ json }));
    await page.goto(`${origin}/#/`);
    await page.goto(`${origin}/#/geo`);
    await page.getByText("This stamp is alone").waitFor();
    await page.locator("code", { hasText: "./stamp up -d --stamps 2" }).waitFor();
    assert.deepEqual(await violationsIn(page), []);
    assert.deepEqual(bench.problems, []);
  });
});
