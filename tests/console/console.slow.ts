/**
 * The console in a real Chromium, on a real stamp: sign-in and its limits, every view, what is shown when there is nothing, or no answer, a
 * process that is killed while the page is open, hostile names, and axe without a violation. Skipped where Chromium is missing.
 */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { ConsoleBench, hostileNames, skip, violationsIn } from "./browser.ts";

const views = ["", "processes", "nodes", "streams", "extents", "ranges", "data", "events"];

describe("console in Chromium", { skip }, () => {
  const bench = new ConsoleBench();
  let browser: Browser;
  let context: BrowserContext;
  let page: Page;
  let origin = "";

  before(async () => {
    await bench.up();
    ({ browser, page, origin } = await bench.open());
    context = page.context();
  });
  after(() => bench.close());

  const show = async (path: string): Promise<void> => {
    await page.goto(`${origin}/#/`);
    await page.goto(`${origin}/#/${path}`);
  };

  test("the link signs in once, leaves no token in the address, and another browser needs its own", async () => {
    assert.equal(page.url(), `${origin}/#/`);
    const link = await bench.link();
    const other = await browser.newContext();
    const second = await other.newPage();
    await second.goto(`${origin}/#/extents`);
    await second.getByText("This browser has no session").waitFor();
    await second.goto(link);
    await second.locator(".health h2").waitFor();
    const third = await other.newPage();
    await other.clearCookies();
    await third.goto(link);
    await third.getByText("the link was used before").waitFor();
    await second.getByRole("button", { name: "Sign out" }).click();
    await second.getByText("This browser has no session").waitFor();
    // More than two snapshots of a stream that goes on.
    await second.waitForTimeout(2_500);
    assert.ok(await second.getByText("This browser has no session").isVisible());
    await page.reload();
    await page.locator(".health h2").waitFor();
    await other.close();
  });

  test("no script reads the cookie, and the cookie alone opens nothing", async () => {
    const [cookie] = await context.cookies(`${origin}/api/`);
    assert.deepEqual([cookie?.httpOnly, cookie?.sameSite, cookie?.path], [true, "Strict", "/api/"]);
    assert.equal(await page.evaluate("document.cookie"), "");
    assert.equal(await page.evaluate(`fetch("/api/session").then(({ status }) => status)`), 401);
  });

  test("a page of another port of this machine gets nothing", async () => {
    const strange = await context.newPage();
    await strange.route("http://127.0.0.1:9/", (route) => route.fulfill({ body: "<p>strange</p>", contentType: "text/html" }));
    await strange.goto("http://127.0.0.1:9/");
    for (const path of ["/api/session", "/api/streams", "/main.js"]) {
      assert.equal(
        await strange.evaluate(`fetch("${origin}${path}", { credentials: "include" }).then(() => "read", () => "refused")`),
        "refused",
        path,
      );
    }
    await strange.close();
  });

  test("every view shows the stamp", async () => {
    await show("");
    await page.getByText("processes are ready").first().waitFor();
    await show("processes");
    await page.locator(".process.good", { hasText: "extent-node-1" }).waitFor();
    await page
      .getByRole("link", { name: /^partition-server-1/ })
      .first()
      .click();
    await page.getByRole("heading", { name: "partition-server-1" }).waitFor();
    await show("nodes");
    await page.getByRole("row", { name: "extent-node-1" }).waitFor();
    await show("streams");
    await page.getByRole("link", { name: "/pm/map/commit-log" }).click();
    await page.locator(".chip.primary").first().waitFor();
    await show("extents");
    await page.locator(".chip.primary").first().waitFor();
    await show("ranges");
    await page.getByRole("cell", { name: "blob-1" }).waitFor();
    await show("data");
    await page.getByRole("link", { name: "devstoreaccount1" }).waitFor();
    await show("events");
    await page.getByText("the console began to watch:").waitFor();
    await show("nowhere");
    await page.getByText("There is no such page").waitFor();
    await show("processes/no-such");
    await page.getByText("There is no process no-such").waitFor();
  });

  test("axe finds no violation, light and dark, wide and narrow; nothing is wider than the window", async () => {
    await show("");
    for (const colours of ["light", "dark"]) {
      await page.getByLabel("Colours").selectOption(colours);
      for (const width of [400, 1_280, 2_560]) {
        await page.setViewportSize({ width, height: 900 });
        for (const view of views) {
          await show(view);
          await page.locator("h1").waitFor();
          await page.locator(".row:not(.head), .health, .layer, .events, .plain").first().waitFor();
          assert.deepEqual(await violationsIn(page), [], `${view || "overview"}, ${colours}, ${width} px`);
          assert.equal(await page.evaluate("document.documentElement.scrollWidth"), width, view);
        }
      }
    }
  });

  test("colours are the system's, follow it while the page is open, and stay as the reader chose", async () => {
    const groundOf = async (theme: string): Promise<string> => {
      await page.locator(`html[data-theme="${theme}"]`).waitFor();
      return page.evaluate("getComputedStyle(document.body).backgroundColor");
    };
    await show("");
    await page.getByLabel("Colours").selectOption("system");
    await page.emulateMedia({ colorScheme: "light" });
    const light = await groundOf("light");
    await page.emulateMedia({ colorScheme: "dark" });
    assert.notEqual(await groundOf("dark"), light);
    // Stored before the page is painted again: whoever reloads at once keeps the choice.
    const stored = await page.evaluate(`(() => {
      const select = [...document.querySelectorAll("label")].find(({ textContent }) => textContent.startsWith("Colours")).firstElementChild;
      select.value = "light";
      select.dispatchEvent(new Event("change"));
      return localStorage.getItem("theme");
    })()`);
    assert.equal(stored, "light");
    await page.reload();
    await page.locator(".health h2").waitFor();
    assert.equal(await groundOf("light"), light);
    await page.getByLabel("Colours").selectOption("system");
    await page.emulateMedia({ colorScheme: null });
  });

  test("hostile names are shown as text", async () => {
    await page.setViewportSize({ width: 1_280, height: 900 });
    const title = "Streams · Stamp console";
    await page.route("**/api/streams?*", (route) =>
      route.fulfill({ json: { items: hostileNames.map((name) => ({ name, ownerEpoch: 1, extentCount: 1 })), next: null } }),
    );
    await page.route("**/api/ranges?*", (route) =>
      route.fulfill({
        json: {
          items: hostileNames.map((id) => ({
            id,
            table: id,
            lowKey: id,
            highKey: id,
            server: id,
            loaded: true,
            ownerEpoch: 1,
            change: "",
            readsPerSecond: 1,
            writesPerSecond: 1,
          })),
          next: null,
        },
      }),
    );
    await show("streams");
    for (const name of hostileNames) await page.getByRole("link", { name, exact: true }).waitFor();
    assert.equal(await page.title(), title);
    assert.equal(await page.locator("main img, main script").count(), 0);
    await show("ranges");
    await page
      .getByRole("cell", { name: hostileNames[0] as string, exact: true })
      .first()
      .waitFor();
    assert.equal(await page.evaluate("document.documentElement.scrollWidth"), 1_280);
    await show(`streams/${encodeURIComponent(hostileNames[0] as string)}`);
    await page
      .getByText(hostileNames[0] as string)
      .first()
      .waitFor();
    assert.equal(await page.locator("main img").count(), 0);
    await page.unroute("**/api/streams?*");
    await page.unroute("**/api/ranges?*");
  });

  test("lists: empty, failed and tried again, and 100,000 rows of which the document has few", async () => {
    await page.route("**/api/extents?*", (route) => route.fulfill({ json: { items: [], next: null } }));
    await show("extents");
    await page.getByText("The first append to a stream makes one").waitFor();
    await page.unroute("**/api/extents?*");
    await page.route("**/api/extents?*", (route) => route.fulfill({ status: 503, json: { message: "no stream-manager leads now" } }));
    await show("extents");
    await page.getByText("no stream-manager leads now").waitFor();
    await page.unroute("**/api/extents?*");
    await page.getByRole("button", { name: "Try again" }).click();
    await page.locator(".chip.primary").first().waitFor();
    const extent = {
      stream: "/s",
      state: "sealed",
      ownerEpoch: 1,
      sealedBytes: 1,
      nodes: ["extent-node-1"],
      coding: "",
      intact: 1,
      attempt: "",
    };
    await page.route("**/api/extents?*", (route) =>
      route.fulfill({ json: { items: Array.from({ length: 100_000 }, (_, index) => ({ ...extent, id: String(index + 1) })), next: null } }),
    );
    await show("extents");
    await page.getByText("100,000 extents").waitFor();
    await page.locator(".table").evaluate((table) => table.scrollTo(0, table.scrollHeight));
    await page.getByRole("cell", { name: "100000", exact: true }).waitFor();
    assert.ok((await page.getByRole("row").count()) < 80);
    await page.unroute("**/api/extents?*");
  });

  test("ten tabs of one browser follow at once, and go on when the first has closed; lists are served meanwhile", async () => {
    const tabs = [];
    for (let tab = 0; tab < 10; tab++) {
      const opened = await context.newPage();
      await opened.goto(`${origin}/#/extents`);
      await opened.locator(".chip.primary").first().waitFor();
      tabs.push(opened);
    }
    await page.close();
    page = tabs.shift() as Page;
    const before = await page.locator(".top time").getAttribute("datetime");
    for (const tab of [page, ...tabs]) await tab.locator(`.top time:not([datetime="${before}"])`).waitFor();
    for (const tab of tabs) await tab.close();
  });

  test("a process that is killed while the page is open is told, and its start again", async () => {
    await show("");
    await bench.ask({ do: "signal", name: "extent-node-2", signal: "SIGKILL" });
    await page
      .getByText(/ended with .*SIGKILL/)
      .first()
      .waitFor();
    await page.locator(".events .good", { hasText: "extent-node-2" }).first().waitFor();
  });

  test("a stamp that is stopped, and one that runs again", async () => {
    await bench.down();
    await page.getByText("No stamp answers").waitFor();
    await page.locator("main code", { hasText: "./stamp up -d" }).waitFor();
    await bench.up();
    await show("events");
    await page.getByText("the stamp answers").first().waitFor();
  });

  test("managers that are gone are findings with a command, and no more when they are back", async () => {
    await show("");
    await bench.ask({ do: "hold", name: "stream-manager-1" });
    await bench.ask({ do: "hold", name: "stream-manager-2" });
    const finding = page.locator(".findings li", { hasText: "stream-manager" }).first();
    await finding.locator("code", { hasText: "./stamp" }).waitFor();
    for (const name of ["stream-manager-1", "stream-manager-2"]) await bench.ask({ do: "start", name });
    await finding.waitFor({ state: "detached" });
  });

  test("a console that has gone is told, and the page goes on when it is back: with a new link", async () => {
    await bench.stop();
    await page.getByText("The console has not answered").waitFor();
    bench.start(new URL(origin).host);
    await page.getByText("This browser has no session").waitFor();
    await page.goto(await bench.link());
    await page.locator(".health h2").waitFor();
  });

  test("nothing went wrong in the page meanwhile", () => assert.deepEqual(bench.problems, []));
});
