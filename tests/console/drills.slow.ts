/** Drills and fault rules in the console, in a real Chromium on a real stamp: one is run to its verdict, a rule bites and is removed. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { BlobServiceClient } from "@azure/storage-blob";
import type { Page } from "playwright-core";
import { ConsoleBench, controlsOf, hostileNames, skip, violationsIn } from "./browser.ts";

/** A drill on a busy machine waits until every extent has its copies again. */
const drillTimeoutMs = 180_000;

describe("drills in the console", { skip }, () => {
  const bench = new ConsoleBench();
  let page: Page;
  const { button, confirm, dialog } = controlsOf(() => page);
  let origin = "";

  before(async () => {
    await bench.up("--fault-rules", "true");
    ({ page, origin } = await bench.open("operate"));
  });
  after(() => bench.close());

  const puts = async (): Promise<string> => {
    const { connectionString } = await bench.ask({ do: "status" });
    const service = BlobServiceClient.fromConnectionString(connectionString, { retryOptions: { maxTries: 1 } });
    return service
      .getContainerClient("faults")
      .createIfNotExists()
      .then(
        () => "done",
        (error: { readonly code?: string }) => error.code ?? "failed",
      );
  };

  test("all drills are listed; axe finds no violation, light and dark, wide and narrow", async () => {
    for (const colours of ["light", "dark"]) {
      await page.getByLabel("Colours").selectOption(colours);
      for (const width of [400, 1_280]) {
        await page.setViewportSize({ width, height: 900 });
        await page.goto(`${origin}/#/drills`);
        await page.getByRole("row", { name: "kill-primary" }).first().waitFor();
        await page.getByText("No fault rules").waitFor();
        assert.deepEqual(await violationsIn(page), [], `${colours} ${width}`);
        assert.equal(await page.evaluate("document.documentElement.scrollWidth"), width);
      }
    }
  });

  test("a rule is added, bites, is shown with its hits, and is removed", async () => {
    await page.goto(`${origin}/#/drills`);
    assert.equal(await puts(), "done");
    await button("Add a rule").click();
    assert.deepEqual(await violationsIn(page), []);
    await dialog().getByRole("combobox").first().selectOption("error-before");
    await dialog().getByLabel("Only this operation").fill("CreateContainer");
    await confirm("Add");
    const row = page.getByRole("row", { name: "rule-1" });
    await row.getByText("--operation CreateContainer --share 1 --ends-after 300").waitFor();
    assert.equal(await puts(), "InternalError");
    await button("Load again").click();
    await row.getByRole("cell", { name: "1", exact: true }).waitFor();
    assert.deepEqual(await violationsIn(page), []);
    await button("Remove rule-1").click();
    await confirm("Remove");
    await page.getByText("No fault rules").waitFor();
    assert.equal(await puts(), "done");
  });

  test("a rule that the front-end refuses is told in the dialog; no rule is left", async () => {
    await button("Add a rule").click();
    await dialog()
      .getByLabel("Only this operation")
      .fill(hostileNames[0] as string);
    await dialog().getByRole("button", { name: "Add", exact: true }).click();
    await dialog().getByRole("alert").waitFor();
    await dialog().getByRole("button", { name: "Cancel" }).click();
    await page.getByText("No fault rules").waitFor();
  });

  test("a drill runs to its verdict: its timeline grows beside its clients, a second one waits, a page that is closed changes nothing", async () => {
    await button("Run kill-primary").click();
    await confirm("Run it");
    await page.locator(".timeline li", { hasText: "kill -9" }).first().waitFor({ timeout: drillTimeoutMs });
    assert.equal(await page.getByRole("button", { name: "Run kill-primary" }).count(), 0);
    assert.deepEqual(await violationsIn(page), []);
    const status = await page.evaluate(`fetch("/api/start-drill", {
      method: "POST",
      body: JSON.stringify({ drill: "kill-primary" }),
      headers: { "X-Stamp-Key": localStorage.getItem("key") },
    }).then((answer) => answer.json()).then(({ message }) => message)`);
    assert.match(String(status), /one runs at a time/);
    const context = page.context();
    await page.close();
    page = await context.newPage();
    await page.goto(`${origin}/#/drills`);
    await page
      .locator(".badge", { hasText: /kept|slow/ })
      .first()
      .waitFor({ timeout: drillTimeoutMs });
    await page.locator(".timeline li", { hasText: "copies complete" }).first().waitFor();
    await page.locator(".plot").first().waitFor();
    assert.deepEqual(await violationsIn(page), []);
    const { processes } = await bench.ask({ do: "status" });
    assert.ok(processes.every(({ ready }) => ready));
  });

  test("hostile words of a drill and of rules are shown as text", async () => {
    const [name = ""] = hostileNames;
    const run = {
      drill: name,
      startedMs: Date.now(),
      isOver: true,
      entries: hostileNames.map((what, atMs) => ({ atMs, what })),
      writes: [],
      verdict: "broken",
      conclusion: name,
      broken: hostileNames,
    };
    await page.route("**/api/drills?", (route) => route.fulfill({ json: { whyNot: "", drills: [{ name, about: name, aimMs: 1 }], run } }));
    await page.route("**/api/faults?*", (route) =>
      route.fulfill({ json: { items: [{ name, fault: name, which: name, hits: 1, isOver: false }], next: null } }),
    );
    await page.reload();
    await page.getByRole("heading", { name, exact: true }).waitFor();
    await page.locator("code", { hasText: name }).waitFor();
    for (const what of hostileNames) await page.locator(".timeline li", { hasText: what }).first().waitFor();
    assert.equal(await page.locator("main img, main script").count(), 0);
    await page.unroute("**/api/drills?");
    await page.unroute("**/api/faults?*");
  });

  test("on a stamp that was not started for faults nothing is offered, and calls are refused in words", async () => {
    const plain = new ConsoleBench();
    try {
      await plain.up();
      const { page: other, origin: otherOrigin } = await plain.open("operate");
      await other.goto(`${otherOrigin}/#/drills`);
      await other.getByText("Drills are off").waitFor();
      assert.equal(await other.getByRole("button", { name: "Run kill-primary" }).count(), 0);
      const message = await other.evaluate(`fetch("/api/start-drill", {
        method: "POST",
        body: JSON.stringify({ drill: "kill-primary" }),
        headers: { "X-Stamp-Key": localStorage.getItem("key") },
      }).then((answer) => answer.json()).then(({ message }) => message)`);
      assert.match(String(message), /--fault-rules true/);
      assert.deepEqual(await violationsIn(other), []);
    } finally {
      await plain.close();
    }
    assert.deepEqual([...bench.problems, ...plain.problems], []);
  });
});
