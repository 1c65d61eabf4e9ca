/** Accounts in the console, in a real Chromium on a real stamp: created, set, their keys shown and rotated, by a session that may and one that may not. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { BlobServiceClient, StorageSharedKeyCredential } from "@azure/storage-blob";
import type { Page } from "playwright-core";
import { ConsoleBench, controlsOf, skip, violationsIn } from "./browser.ts";

describe("accounts in the console", { skip }, () => {
  const bench = new ConsoleBench();
  let page: Page;
  const { button, confirm, dialog } = controlsOf(() => page);
  let origin = "";
  let blobUrl = "";

  before(async () => {
    await bench.up();
    blobUrl = new URL((await bench.ask({ do: "status" })).endpoints.blob).origin;
    ({ page, origin } = await bench.open("operate"));
  });
  after(() => bench.close());

  const shownKeys = async (): Promise<string[]> => {
    await button("Show keys").click();
    await confirm("Show");
    const keys = page.getByRole("region", { name: "Keys" }).locator("code");
    await keys.nth(1).waitFor();
    return keys.allTextContents();
  };
  const opens = (key: string): Promise<boolean> =>
    new BlobServiceClient(`${blobUrl}/acme`, new StorageSharedKeyCredential("acme", key), { retryOptions: { maxTries: 1 } })
      .getProperties()
      .then(
        () => true,
        () => false,
      );

  test("an account is created; a name that is taken is told in the dialog, which stays", async () => {
    await page.goto(`${origin}/#/accounts`);
    await page.getByRole("link", { name: "devstoreaccount1" }).waitFor();
    await button("Create an account").click();
    await dialog().getByRole("textbox").fill("devstoreaccount1");
    await dialog().getByRole("button", { name: "Create" }).click();
    await dialog().getByRole("alert").waitFor();
    assert.deepEqual(await violationsIn(page), []);
    await dialog().getByRole("textbox").fill("acme");
    await confirm("Create");
    await page.getByRole("link", { name: "acme", exact: true }).click();
    await page.getByRole("heading", { name: "acme" }).waitFor();
    assert.deepEqual(await violationsIn(page), []);
  });

  test("its keys are shown, and one is rotated: the old one ends, the other stays", async () => {
    const before = await shownKeys();
    assert.deepEqual(await Promise.all(before.map(opens)), [true, true]);
    await button("Rotate a key").click();
    await dialog().getByRole("combobox").selectOption("2");
    await confirm("Rotate");
    const after = await shownKeys();
    assert.equal(after[0], before[0]);
    assert.notEqual(after[1], before[1]);
    assert.deepEqual(await Promise.all([...after, before[1] ?? ""].map(opens)), [true, true, false]);
  });

  test("settings are changed, and the page shows them as the service has them", async () => {
    await button("Settings").click();
    await dialog().getByRole("checkbox").first().check();
    await dialog().getByRole("spinbutton").fill("14");
    await confirm("Save");
    await page.getByText("kept for 14 days").waitFor();
    await page.getByText("every write keeps what was there").waitFor();
  });

  test("a session without the role sees settings and no buttons; its calls are refused, and all is in the audit log", async () => {
    await bench.stop();
    bench.start();
    const other = await bench.signedIn();
    await other.goto(`${new URL(other.url()).origin}/#/accounts/acme`);
    await other.getByText("kept for 14 days").waitFor();
    await other.getByText("may not change accounts").waitFor();
    assert.equal(await other.getByRole("button", { name: "Show keys" }).count(), 0);
    const status = await other.evaluate(`fetch("/api/show-keys", {
      method: "POST",
      body: JSON.stringify({ account: "acme" }),
      headers: { "X-Stamp-Key": localStorage.getItem("key") },
    }).then(({ status }) => status)`);
    assert.equal(status, 403);
    const stamp = [join(import.meta.dirname, "../../stamp.mjs"), "logs", "--audit", "--json", "--data", bench.dataDir];
    const lines = execFileSync(process.execPath, stamp, { encoding: "utf8" }).trim().split("\n");
    const told = lines
      .map((line) => JSON.parse(line) as { readonly msg: string; readonly result: string })
      .map(({ msg, result }) => `${msg} ${result}`);
    assert.deepEqual(
      told.filter((line) => !line.includes("sign-in")),
      [
        "audit: create account failed: account devstoreaccount1 is there already",
        "audit: create account done",
        "audit: show keys done",
        "audit: rotate key done",
        "audit: show keys done",
        "audit: set account done",
        "audit: show keys refused",
      ],
    );
    assert.deepEqual(bench.problems, []);
  });
});
