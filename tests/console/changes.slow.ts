/**
 * Changes of data in the console, in a real Chromium on a real stamp: files are dropped, cut and sent on; blobs get metadata and tags, are
 * deleted and had back; entities of every type, messages, and URLs with signatures. The SDKs of Azure say what became of each.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { TableClient, type TableEntityResult } from "@azure/data-tables";
import { BlobServiceClient, type ContainerClient } from "@azure/storage-blob";
import { type QueueClient, QueueServiceClient } from "@azure/storage-queue";
import type { Page } from "playwright-core";
import { ConsoleBench, controlsOf, skip, violationsIn } from "./browser.ts";

const account = "devstoreaccount1";
const root = join(import.meta.dirname, "../..");

describe("changes of data in the console", { skip }, () => {
  const bench = new ConsoleBench();
  let page: Page;
  const { button, confirm, dialog } = controlsOf(() => page);
  let origin = "";
  let container: ContainerClient;
  let table: TableClient;
  let queue: QueueClient;

  before(async () => {
    await bench.up();
    const { connectionString } = await bench.ask({ do: "status" });
    const service = BlobServiceClient.fromConnectionString(connectionString);
    await service.setProperties({ deleteRetentionPolicy: { enabled: true, days: 7 } });
    container = service.getContainerClient("files");
    table = TableClient.fromConnectionString(connectionString, "people", { allowInsecureConnection: true });
    queue = QueueServiceClient.fromConnectionString(connectionString).getQueueClient("orders");
    await Promise.all([container.create(), table.createTable(), queue.create()]);
    ({ page, origin } = await bench.open());
  });
  after(() => bench.close());

  const show = async (...path: readonly string[]): Promise<void> => {
    await page.goto(`${origin}/#/`);
    await page.goto(`${origin}/#/data/${path.map(encodeURIComponent).join("/")}`);
  };
  const put = (name: string, content: string): Promise<unknown> => container.getBlockBlobClient(name).upload(content, content.length);
  const uploadState = (name: string, words: string): Promise<void> =>
    page.getByRole("list", { name: "Uploads" }).getByRole("listitem").filter({ hasText: name }).filter({ hasText: words }).waitFor();

  test("containers, tables and queues are made, and removed by who types the name; what the service refuses is told", async () => {
    for (const [kind, wrong] of [
      ["container", "Wrong"],
      ["table", "1wrong"],
      ["queue", "Wrong"],
    ] as const) {
      const name = `made${kind}`;
      const make = `Create a ${kind}`;
      const create = dialog().getByRole("button", { name: "Create", exact: true });
      await show(account, `${kind}s`);
      await button(make).click();
      await dialog().getByLabel("Name").fill(wrong);
      await create.click();
      await dialog().getByRole("alert").getByText("Invalid").waitFor();
      assert.deepEqual(await violationsIn(page), []);
      await dialog().getByLabel("Name").fill(name);
      await create.click();
      await dialog().waitFor({ state: "detached" });
      await page.locator(".table").getByRole("link", { name, exact: true }).waitFor();
      await button(make).click();
      await dialog().getByLabel("Name").fill(name);
      await create.click();
      await dialog().getByRole("alert").getByText("AlreadyExists").waitFor();
      await page.keyboard.press("Escape");
      await button(`Delete ${name}`).click();
      assert.deepEqual(await violationsIn(page), []);
      await dialog().getByLabel("Its name").fill("another");
      await dialog().getByRole("button", { name: "Delete", exact: true }).click();
      await dialog().getByRole("alert").getByText(`type ${name}`).waitFor();
      await dialog().getByLabel("Its name").fill(name);
      await confirm("Delete");
      await page.locator(".table").getByRole("link", { name, exact: true }).waitFor({ state: "detached" });
    }
  });

  test("a snapshot is made, written over the blob again after a change, downloaded and deleted alone", async () => {
    await put("past.txt", "first words");
    await show(account, "blob", "files", "past.txt");
    await page.getByText("No versions and snapshots").waitFor();
    await button("Make a snapshot").click();
    await confirm("Make a snapshot");
    await page.getByRole("cell", { name: "snapshot", exact: true }).waitFor();
    await put("past.txt", "second, longer words");
    await page.reload();
    await page.getByText("second, longer words").waitFor();
    assert.deepEqual(await violationsIn(page), []);
    const [saved] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: /^Download snapshot/ }).click()]);
    assert.equal(readFileSync(await saved.path(), "utf8"), "first words");
    await page.getByRole("button", { name: /^Make current: snapshot/ }).click();
    assert.deepEqual(await violationsIn(page), []);
    await confirm("Make current");
    await page.getByText("first words").waitFor();
    assert.equal(String(await container.getBlobClient("past.txt").downloadToBuffer()), "first words");
    await page.getByRole("button", { name: /^Delete snapshot/ }).click();
    await confirm("Delete");
    await page.getByText("No versions and snapshots").waitFor();
    assert.equal(await container.getBlobClient("past.txt").exists(), true);
  });

  test("files are chosen or dropped; a blob that is there stays until a person says so", async () => {
    await show(account, "blobs", "files", "in/");
    const choose = (name: string, content: string): Promise<void> =>
      page.locator("input[type=file]").setInputFiles({ name, mimeType: "text/plain", buffer: Buffer.from(content) });
    await choose("one.txt", "first");
    await uploadState("one.txt", "is there");
    await page.locator(".table").getByRole("link", { name: "one.txt" }).waitFor();
    const one = container.getBlobClient("in/one.txt");
    assert.equal((await one.downloadToBuffer()).toString(), "first");
    assert.equal((await one.getProperties()).contentType, "text/plain");
    await choose("empty", "");
    await uploadState("empty", "is there");
    assert.equal((await container.getBlobClient("in/empty").getProperties()).contentLength, 0);
    await choose("one.txt", "second");
    await uploadState("one.txt", "a blob of this name is there");
    assert.equal((await one.downloadToBuffer()).toString(), "first");
    await button("Replace it").click();
    await button("Replace it").waitFor({ state: "detached" });
    await page.locator(".row", { hasText: "one.txt" }).getByText("6 B").waitFor();
    assert.equal((await one.downloadToBuffer()).toString(), "second");
    await page.evaluate(`{
      const dropped = new DataTransfer();
      dropped.items.add(new File(["dropped content"], "<b>.txt"));
      document.querySelector(".drop").dispatchEvent(new DragEvent("drop", { dataTransfer: dropped, bubbles: true, cancelable: true }));
    }`);
    await uploadState("<b>.txt", "is there");
    assert.equal((await container.getBlobClient("in/<b>.txt").downloadToBuffer()).toString(), "dropped content");
  });

  test("an upload that is cut waits, goes on by itself, and sends no block twice, also after the page was loaded anew", async () => {
    const content = Buffer.alloc(11 * 1_024 * 1_024, "0123456789abcdef");
    const sent: string[] = [];
    page.on("response", (response) => {
      const url = new URL(response.url());
      if (url.pathname === "/api/put-block") sent.push(url.searchParams.get("number") ?? "");
    });
    // A file on disk has one time of change, whenever it is chosen.
    const path = join(bench.dataDir, "large.bin");
    writeFileSync(path, content);
    let cuts = 0;
    await page.route("**/api/put-block?*number=1", (route) => {
      cuts++;
      return route.abort("connectionreset");
    });
    await show(account, "blobs", "files");
    await page.locator("input[type=file]").setInputFiles(path);
    await uploadState("large.bin", "was cut, and is tried again every second");
    assert.deepEqual(sent, ["0"]);
    await page.reload();
    await page.locator("input[type=file]").setInputFiles(path);
    await uploadState("large.bin", "was cut");
    assert.ok(cuts >= 2);
    assert.deepEqual(sent, ["0"]);
    await page.unroute("**/api/put-block?*number=1");
    await uploadState("large.bin", "is there");
    assert.deepEqual(sent, ["0", "1", "2"]);
    assert.ok(content.equals(await container.getBlobClient("large.bin").downloadToBuffer()));
    await button("Take away large.bin").click();
  });

  test("metadata and tags are written; another's change in between is not overwritten", async () => {
    await put("notes.txt", "notes");
    const blob = container.getBlobClient("notes.txt");
    await show(account, "blob", "files", "notes.txt");
    await button("Metadata").click();
    await dialog().getByRole("button", { name: "Add one" }).click();
    await dialog().getByLabel("Name 1").fill("place");
    await dialog().getByLabel("Value 1").fill("Sylt & <Amrum>");
    await confirm("Save");
    await page.getByText("Metadata place").waitFor();
    assert.deepEqual((await blob.getProperties()).metadata, { place: "Sylt & <Amrum>" });
    await button("Tags").click();
    await dialog().getByRole("button", { name: "Add one" }).click();
    await dialog().getByLabel("Name 1").fill("season");
    await dialog().getByLabel("Value 1").fill("spring");
    await confirm("Save");
    await page.getByText("Tag season").waitFor();
    assert.deepEqual((await blob.getTags()).tags, { season: "spring" });
    await blob.setMetadata({ by: "another" });
    await button("Metadata").click();
    await dialog().getByRole("button", { name: "Take out place" }).click();
    await dialog().getByRole("button", { name: "Save" }).click();
    await dialog().getByRole("alert").getByText("ConditionNotMet").waitFor();
    assert.deepEqual(await violationsIn(page), []);
    await page.keyboard.press("Escape");
    await dialog().waitFor({ state: "detached" });
    assert.deepEqual((await blob.getProperties()).metadata, { by: "another" });
    await blob.setMetadata({ Author: "Ada", flag: "" });
    await show(account, "blob", "files", "notes.txt");
    await page.getByText("Metadata Author").waitFor();
    await button("Metadata").click();
    await dialog().getByRole("button", { name: "Add one" }).click();
    await dialog().getByLabel("Name 3").fill("More");
    await dialog().getByLabel("Value 3").fill("1");
    await confirm("Save");
    await page.getByText("Metadata More").waitFor();
    const listed = container.listBlobsFlat({ prefix: "notes.txt", includeMetadata: true });
    for await (const { metadata } of listed) assert.deepEqual({ ...metadata }, { Author: "Ada", flag: "", More: "1" });
  });

  test("a blob is deleted after a question, and had back", async () => {
    await put("old/gone.txt", "was here");
    await show(account, "blob", "files", "old/gone.txt");
    await button("Delete").click();
    await dialog().getByRole("button", { name: "Cancel" }).click();
    assert.ok(await container.getBlobClient("old/gone.txt").exists());
    await button("Delete").click();
    await confirm("Delete");
    await page.waitForURL("**/#/data/*/blobs/files/old%2F");
    assert.equal(await container.getBlobClient("old/gone.txt").exists(), false);
    await page.getByText("No blobs and folders").waitFor();
    await page.getByLabel("Deleted blobs, too").check();
    await button("Undelete old/gone.txt").click();
    await confirm("Undelete");
    await page.locator(".table").getByRole("link", { name: "gone.txt" }).waitFor();
    assert.equal((await container.getBlobClient("old/gone.txt").downloadToBuffer()).toString(), "was here");
  });

  test("entities: every type is added, what is wrong is said, edits keep the others, and one is deleted", async () => {
    await show(account, "tables", "people");
    await button("Add an entity").click();
    await dialog().getByLabel("PartitionKey").fill("north");
    await dialog().getByLabel("RowKey").fill("<b>1");
    const values = { Boolean: "true", Int32: "-7", Int64: "9007199254740993", Double: "1.5", DateTime: "2026-11-29T01:02:03Z" };
    const more = { Guid: "0f8fad5b-d9cb-469f-a165-70867728950e", Binary: "AQI=", String: "<i>text</i>" };
    let row = 0;
    for (const [type, value] of Object.entries({ ...values, ...more })) {
      row++;
      await dialog().getByRole("button", { name: "Add a property" }).click();
      await dialog().getByLabel(`Property ${row}`).fill(`Of${type}`);
      await dialog().getByLabel(`Type ${row}`).selectOption(type);
      await dialog()
        .getByLabel(`Value ${row}`)
        .fill(type === "Int32" ? "seven" : value);
    }
    await dialog().getByRole("button", { name: "Save" }).click();
    await dialog().getByText("an Int32 is a whole number").waitFor();
    await dialog().getByLabel("Value 2").fill("-7");
    await confirm("Save");
    const read = (): Promise<TableEntityResult<Record<string, unknown>>> =>
      table.getEntity("north", "<b>1", { disableTypeConversion: true });
    const { OfBoolean, OfInt32, OfInt64, OfDouble, OfDateTime, OfGuid, OfBinary, OfString } = await read();
    assert.deepEqual(
      [OfBoolean, OfInt32, OfInt64, OfDouble, OfDateTime, OfGuid, OfBinary, OfString].map((each) =>
        String((each as { value?: unknown }).value ?? each),
      ),
      ["true", "-7", "9007199254740993", "1.5", "2026-11-29T01:02:03Z", more.Guid, "AQI=", "<i>text</i>"],
    );
    await button("Edit north / <b>1").click();
    await dialog().getByLabel("Value 3").fill("1");
    const again = page.waitForResponse((response) => new URL(response.url()).pathname === "/api/entities");
    await page.evaluate("[...document.querySelectorAll('button')].find(({ textContent }) => textContent === 'Load again').click()");
    await again;
    await page.getByText("1 entities").waitFor();
    assert.equal(await dialog().getByLabel("Value 3").inputValue(), "1", "what is open stays while the list loads again");
    await dialog().getByRole("button", { name: "Take out OfString" }).click();
    const fields = await dialog()
      .locator("input[aria-label^=Property]")
      .evaluateAll((all) => all.map((each) => (each as unknown as { value: string }).value));
    assert.equal(fields.length, 7);
    await confirm("Save");
    await page.getByRole("cell", { name: "AQI=" }).waitFor();
    assert.equal((await read()).OfString, undefined);
    assert.equal(Object.keys(await read()).filter((name) => name.startsWith("Of")).length, 7);
    await table.updateEntity({ partitionKey: "north", rowKey: "<b>1", late: "by another" });
    await button("Delete north / <b>1").click();
    await dialog().getByRole("button", { name: "Delete" }).click();
    await dialog().getByRole("alert").getByText("UpdateConditionNotSatisfied").waitFor();
    await page.keyboard.press("Escape");
    await button("Load again").click();
    await page.getByRole("cell", { name: "by another" }).waitFor();
    await button("Delete north / <b>1").click();
    await confirm("Delete");
    await page.getByText("No entities").waitFor();
    await assert.rejects(read());
  });

  test("messages are put, taken and cleared", async () => {
    await show(account, "queues", "orders");
    for (const text of ["<order id='1'/>", "second"]) {
      await button("Put a message").click();
      await dialog().getByLabel("Text").fill(text);
      await confirm("Put");
      await page.getByRole("cell", { name: text }).waitFor();
    }
    await button("Take the first").click();
    await confirm("Take");
    await page.getByLabel("The message that was taken").getByText("<order id='1'/>").waitFor();
    const { peekedMessageItems } = await queue.peekMessages();
    assert.deepEqual(
      peekedMessageItems.map(({ messageText }) => messageText),
      ["second"],
    );
    await button("Clear").click();
    await confirm("Clear");
    await page.getByText("No message is visible").waitFor();
    await button("Take the first").click();
    await dialog().getByRole("button", { name: "Take" }).click();
    await dialog().getByText("no message is visible").waitFor();
    await page.keyboard.press("Escape");
  });

  test("URLs with signatures work for what was chosen, and no more; the samples have them", async () => {
    await put("shared.txt", "shared");
    await table.createEntity({ partitionKey: "a", rowKey: "b" });
    const share = async (path: readonly string[]): Promise<string> => {
      await show(account, ...path);
      await button("Share").click();
      await confirm("Make the URL");
      const made = page.getByLabel("The URL");
      await made.getByText("JavaScript").waitFor();
      assert.deepEqual(await violationsIn(page), []);
      return (await made.locator("code").first().textContent()) ?? "";
    };
    const status = async (url: string, init: RequestInit = {}): Promise<number> => (await fetch(url, init)).status;
    const blobUrl = await share(["blob", "files", "shared.txt"]);
    assert.equal(await (await fetch(blobUrl)).text(), "shared");
    assert.equal(await status(blobUrl, { method: "DELETE" }), 403);
    const containerUrl = await share(["blobs", "files"]);
    assert.equal(await status(`${containerUrl}&restype=container&comp=list`), 200);
    const sample = async (title: string): Promise<string> =>
      (await page
        .getByLabel("The URL")
        .locator("div", { has: page.getByRole("heading", { name: title }) })
        .locator("code")
        .first()
        .textContent()) ?? "";
    await share(["tables", "people"]);
    assert.match(execFileSync("bash", ["-c", `${await sample("curl")} -sS`], { encoding: "utf8" }), /"PartitionKey":"a"/);
    await share(["queues", "orders"]);
    assert.match(execFileSync("bash", ["-c", `${await sample("curl")} -sS`], { encoding: "utf8" }), /QueueMessagesList/);
    for (const path of [
      ["blob", "files", "shared.txt"],
      ["blobs", "files"],
      ["tables", "people"],
      ["queues", "orders"],
    ]) {
      await share(path);
      const script = await sample("JavaScript");
      execFileSync(process.execPath, ["--input-type=module", "-e", script], { cwd: join(root, "tests"), encoding: "utf8" });
    }
  });

  test("axe finds no violation in the dialogs, light and dark, narrow and wide", async () => {
    for (const [colours, width] of [
      ["light", 400],
      ["dark", 1_280],
      ["light", 2_560],
    ] as const) {
      await page.getByLabel("Colours").selectOption(colours);
      await page.setViewportSize({ width, height: 900 });
      for (const [path, name] of [
        [["blob", "files", "shared.txt"], "Metadata"],
        [["blob", "files", "shared.txt"], "Delete"],
        [["blobs", "files"], "Share"],
        [["tables", "people"], "Edit a / b"],
        [["queues", "orders"], "Put a message"],
      ] as const) {
        await show(account, ...path);
        await button(name).click();
        await dialog().waitFor();
        assert.deepEqual(await violationsIn(page), [], `${name}, ${colours}, ${width} px`);
        assert.equal(await page.evaluate("document.documentElement.scrollWidth"), width, name);
        await page.keyboard.press("Escape");
      }
    }
  });

  test("stamp logs --audit shows each change with who, what and result, and no content", () => {
    const args = ["logs", "--audit", "--json", "--data", bench.dataDir];
    const log = execFileSync(process.execPath, [join(root, "stamp.mjs"), ...args], { encoding: "utf8" });
    const lines = log
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { msg: string; who: string; result: string; target?: Record<string, string> });
    const has = (msg: string, result: RegExp, some: Record<string, string>): boolean =>
      lines.some(
        (line) =>
          line.msg === `audit: ${msg}` &&
          line.who === "session-1" &&
          result.test(line.result) &&
          Object.entries(some).every(([name, value]) => line.target?.[name] === value),
      );
    assert.ok(has("sign-in", /^done$/, {}));
    assert.ok(has("commit blob", /^done$/, { account, container: "files", name: "large.bin" }));
    assert.ok(has("commit blob", /^failed: BlobAlreadyExists/, { name: "in/one.txt" }));
    assert.ok(has("set metadata", /^done$/, { name: "notes.txt" }));
    assert.ok(has("set metadata", /^failed: ConditionNotMet/, { name: "notes.txt" }));
    assert.ok(has("set tags", /^done$/, { name: "notes.txt" }));
    assert.ok(has("delete blob", /^done$/, { name: "old/gone.txt" }));
    assert.ok(has("undelete blob", /^done$/, { name: "old/gone.txt" }));
    assert.ok(has("put entity", /^done$/, { table: "people", partitionKey: "north", rowKey: "<b>1" }));
    assert.ok(has("delete entity", /^done$/, { table: "people", rowKey: "<b>1" }));
    for (const what of ["put message", "take message", "clear queue"]) assert.ok(has(what, /^done$/, { queue: "orders" }), what);
    for (const [kind, refusal] of [
      ["container", /^failed: ContainerAlreadyExists/],
      ["table", /^failed: TableAlreadyExists/],
      ["queue", /^failed: QueueAlreadyExists/],
    ] as const) {
      const what = { account, [kind]: `made${kind}` };
      assert.ok(has(`create ${kind}`, /^done$/, what), kind);
      assert.ok(has(`create ${kind}`, refusal, what), kind);
      assert.ok(has(`delete ${kind}`, /^done$/, what), kind);
    }
    assert.ok(has("make sas", /^done$/, { name: "shared.txt", permissions: "r" }));
    for (const content of ["Amrum", "spring", "9007199254740993", "order id", "sig="]) assert.ok(!log.includes(content), content);
  });

  test("nothing went wrong in the page meanwhile", () => assert.deepEqual(bench.problems, []));
});
