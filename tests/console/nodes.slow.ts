/** Extent nodes in the console, in a real Chromium on a real stamp: seen, drained, used again, added and removed; refusals in words. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Locator, Page } from "playwright-core";
import { ConsoleBench, controlsOf, hostileNames, skip, violationsIn } from "./browser.ts";
import { showHostile } from "./hostile-stamp.ts";

describe("extent nodes in the console", { skip }, () => {
  const bench = new ConsoleBench();
  let page: Page;
  const { button, confirm, dialog } = controlsOf(() => page);
  let origin = "";

  before(async () => {
    await bench.up();
    ({ page, origin } = await bench.open("operate"));
  });
  after(() => bench.close());

  const rowOf = (name: string): Locator => page.getByRole("row", { name });

  test("all nodes with their disks, one with its queues; axe finds no violation, light and dark, wide and narrow", async () => {
    for (const colours of ["light", "dark"]) {
      await page.getByLabel("Colours").selectOption(colours);
      for (const width of [400, 1_280]) {
        await page.setViewportSize({ width, height: 900 });
        await page.goto(`${origin}/#/nodes`);
        await rowOf("extent-node-1").getByText("serving").waitFor();
        await page.getByText("no replica waits to be made again").waitFor();
        await page.getByText("no extent is stored as fragments").waitFor();
        assert.deepEqual(await violationsIn(page), [], `${colours} ${width}`);
        await page.goto(`${origin}/#/nodes/extent-node-1`);
        await page.getByText("Queue of the disk").waitFor();
        assert.deepEqual(await violationsIn(page), [], `one node, ${colours} ${width}`);
        assert.equal(await page.evaluate("document.documentElement.scrollWidth"), width);
      }
    }
  });

  test("a node is drained and used again with the keyboard alone; Escape changes nothing", async () => {
    await page.goto(`${origin}/#/nodes/extent-node-4`);
    await button("Drain").focus();
    await page.keyboard.press("Enter");
    await dialog().getByText("It gets nothing new").waitFor();
    assert.deepEqual(await violationsIn(page), []);
    await page.keyboard.press("Escape");
    await dialog().waitFor({ state: "detached" });
    await page.keyboard.press("Enter");
    await dialog().waitFor();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.getByText("extent-node-4 is being emptied").waitFor();
    await button("Use again").click();
    await confirm("Use again");
    await page.getByText("extent-node-4 serves again").waitFor();
    await button("Drain").waitFor();
  });

  test("a node is added; when it is empty it is removed for good", async () => {
    await page.goto(`${origin}/#/nodes`);
    await button("Add a node").click();
    await confirm("Add");
    await page.getByText("extent-node-5 is added").waitFor();
    await rowOf("extent-node-5").getByText("serving").waitFor();
    await page.goto(`${origin}/#/nodes/extent-node-5`);
    await button("Remove").click();
    const submit = dialog().getByRole("button", { name: "Remove", exact: true });
    // Replicas may have been placed on it meanwhile: the dialog says so, and the removal is repeated as a person would.
    for (let attempt = 0; attempt < 60 && (await dialog().count()) > 0; attempt++) {
      if ((await submit.getAttribute("aria-disabled")) !== "true") await submit.click();
      await page.waitForTimeout(500);
    }
    await page.getByText("extent-node-5 is decommissioned").waitFor();
    await rowOf("extent-node-5").waitFor({ state: "detached" });
    const { processes } = await bench.ask({ do: "status" });
    assert.equal(
      processes.some(({ name }) => name === "extent-node-5"),
      false,
    );
  });

  test("a refusal of the service is told in the dialog, which stays", async () => {
    await page.route("**/api/remove-node?", (route) =>
      route.fulfill({ status: 503, json: { message: `too few nodes: ${hostileNames[0]}` } }),
    );
    await page.goto(`${origin}/#/nodes/extent-node-1`);
    await button("Remove").click();
    await dialog().getByRole("button", { name: "Remove", exact: true }).click();
    await dialog().getByRole("alert").getByText(`too few nodes: ${hostileNames[0]}`).waitFor();
    assert.deepEqual(await violationsIn(page), []);
    await dialog().getByRole("button", { name: "Cancel" }).click();
    await page.unroute("**/api/remove-node?");
    await page.goto(`${origin}/#/nodes/no-such`);
    await page.getByText("There is no extent node").waitFor();
  });

  test("a session without the role sees no buttons; its calls are refused, and all is in the audit log", async () => {
    await bench.stop();
    bench.start();
    const other = await bench.signedIn();
    await other.goto(`${new URL(other.url()).origin}/#/nodes/extent-node-1`);
    await other.getByText("may not add, drain or remove nodes").waitFor();
    assert.equal(await other.getByRole("button", { name: "Drain" }).count(), 0);
    const status = await other.evaluate(`fetch("/api/drain-node", {
      method: "POST",
      body: JSON.stringify({ node: "extent-node-1" }),
      headers: { "X-Stamp-Key": localStorage.getItem("key") },
    }).then(({ status }) => status)`);
    assert.equal(status, 403);
    const stamp = [join(import.meta.dirname, "../../stamp.mjs"), "logs", "--audit", "--json", "--data", bench.dataDir];
    const lines = execFileSync(process.execPath, stamp, { encoding: "utf8" }).trim().split("\n");
    const told = lines
      .map((line) => JSON.parse(line) as { readonly msg: string; readonly result: string; readonly target?: { readonly node?: string } })
      .map(({ msg, result, target }) => `${msg} ${target?.node ?? ""} ${result}`)
      .filter((line) => !line.includes("sign-in") && !line.includes("failed: extent-node-5 holds"));
    assert.deepEqual(told, [
      "audit: drain node extent-node-4 done",
      "audit: undrain node extent-node-4 done",
      "audit: add node extent-node-5 done",
      "audit: remove node extent-node-5 done",
      "audit: drain node  refused",
    ]);
    assert.deepEqual(bench.problems, []);
  });

  test("hostile names are shown as text", async () => {
    const other = await bench.signedIn();
    await showHostile(other, "nodes");
    for (const name of hostileNames) await other.getByRole("link", { name, exact: true }).waitFor();
    await other.goto(`${new URL(other.url()).origin}/#/nodes/${encodeURIComponent(hostileNames[0] as string)}`);
    await other.getByRole("heading", { name: hostileNames[0] as string, exact: true }).waitFor();
    assert.equal(await other.title(), "Nodes · Stamp console");
    assert.equal(await other.locator("main img, main script").count(), 0);
    assert.deepEqual(bench.problems, []);
  });
});
