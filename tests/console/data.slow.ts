/**
 * The console's view "Data" in a real Chromium, on a real stamp that the SDKs of Azure filled: blobs of each type, names that are hard to
 * show, entities with every type of property, messages; empty and failed lists, and axe without a violation on each page of the view.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { TableClient } from "@azure/data-tables";
import { BlobServiceClient } from "@azure/storage-blob";
import { QueueServiceClient } from "@azure/storage-queue";
import type { BrowserContext, Locator, Page } from "playwright-core";
import { ConsoleBench, controlsOf, hostileNames, skip, violationsIn } from "./browser.ts";

const account = "devstoreaccount1";
const onePixel = Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64");
/** The service resolves dots in names. */
const names = hostileNames.filter((name) => !name.startsWith("../"));
const html = "<script>document.title = 1</script><img src=x onerror='document.title = 1'>";

describe("data in the console", { skip }, () => {
  const bench = new ConsoleBench();
  let context: BrowserContext;
  let page: Page;
  let origin = "";

  before(async () => {
    await bench.up();
    const { connectionString } = await bench.ask({ do: "status" });
    await Promise.all([putBlobs(connectionString), putEntities(connectionString), putMessages(connectionString)]);
    ({ page, origin } = await bench.open());
    context = page.context();
  });
  after(() => bench.close());

  const show = async (...path: readonly string[]): Promise<void> => {
    await page.goto(`${origin}/#/`);
    await page.goto(`${origin}/#/data/${path.map(encodeURIComponent).join("/")}`);
  };
  const link = (name: string): Locator => page.locator(".table").getByRole("link", { name, exact: true });
  const value = (name: string): Promise<string | null> => page.locator("dt", { hasText: name }).locator("+ dd").first().textContent();

  test("from the accounts to a blob by links, and back by the path", async () => {
    await show();
    await link(account).click();
    await page.getByText("owner=sales").waitFor();
    await link("photos").click();
    await link("2026/").click();
    await link("may/").click();
    await link("sea.png").click();
    await page.getByRole("heading", { name: "sea.png" }).waitFor();
    assert.equal(await value("Metadata place"), "Sylt");
    assert.equal(await value("Tag season"), "spring");
    assert.equal(await value("Size"), `${onePixel.length} B (${onePixel.length} bytes)`);
    await page.getByRole("navigation", { name: "Path" }).getByRole("link", { name: "2026" }).click();
    await link("may/").waitFor();
  });

  test("blobs of each type, and what is in them: pictures, JSON with lines, text, bytes that are neither, nothing", async () => {
    await show(account, "blob", "photos", "2026/may/sea.png");
    const picture = page.getByAltText("Content of the blob");
    await picture.waitFor();
    assert.equal(await picture.evaluate((image) => (image as unknown as { naturalWidth: number }).naturalWidth), 1);
    await show(account, "blob", "photos", "block.json");
    await page.getByText('"deep": {').waitFor();
    assert.equal(await value("Kind of blob"), "BlockBlob");
    await show(account, "blob", "photos", "page.bin");
    await page.getByText("neither text nor a picture").waitFor();
    assert.equal(await value("Kind of blob"), "PageBlob");
    await show(account, "blob", "photos", "log.txt");
    await page.getByText("first line").waitFor();
    assert.equal(await value("Kind of blob"), "AppendBlob");
    await show(account, "blob", "photos", "empty");
    await page.getByText("The blob is empty", { exact: true }).waitFor();
    await show(account, "blob", "photos", "page.html");
    await page.locator("pre", { hasText: html }).waitFor();
    assert.equal(await page.title(), "Data · Stamp console");
    await show(account, "blob", "photos", "long.txt");
    await page.getByText("This is the beginning").waitFor();
  });

  test("from a blob to the extents and nodes of its bytes, and from an extent back to its blobs", async () => {
    await show(account, "blob", "photos", "long.txt");
    const places = page.getByRole("table", { name: "Where the bytes of the blob are" });
    await places.locator(".chip.primary").first().waitFor();
    await places
      .getByRole("link", { name: /^extent \d+/ })
      .first()
      .click();
    await page.getByRole("table", { name: "The extent" }).locator(".chip.primary").first().waitFor();
    assert.deepEqual(await violationsIn(page), []);
    await page.getByRole("link", { name: "Find the blobs" }).click();
    await page.getByRole("table", { name: "Blobs with bytes in the extent" }).getByRole("link", { name: "long.txt", exact: true }).click();
    await page.getByRole("heading", { name: "long.txt" }).waitFor();
    await show(account, "blob", "photos", "block.json");
    await page.getByRole("link", { name: /^row in blob-/ }).waitFor();
    assert.deepEqual(await violationsIn(page), []);
    await show(account, "blob", "photos", "empty");
    await page.getByText("it has no bytes").waitFor();
    await page.goto(`${origin}/#/extents/999999`);
    await page.getByText("There is no extent 999999").waitFor();
    await page.goto(`${origin}/#/extents/no-number`);
    await page.getByText("the number of an extent is expected").waitFor();
  });

  test("a download is the whole blob under its name, and its address works no more", async () => {
    await show(account, "blob", "photos", "long.txt");
    const begun = page.waitForEvent("download");
    await page.getByRole("button", { name: "Download" }).click();
    const download = await begun;
    assert.equal(download.suggestedFilename(), "long.txt");
    const chunks: Uint8Array[] = [];
    for await (const chunk of await download.createReadStream()) chunks.push(chunk);
    assert.equal(Buffer.concat(chunks).toString(), "line\n".repeat(40_000));
    assert.equal((await context.request.get(download.url())).status(), 401);
  });

  test("names that are hard to show are text, each leads to its own blob, and folders with empty names can be opened", async () => {
    await show(account, "blobs", "hostile");
    for (const name of names) {
      const [folder = "", ...inside] = name.split("/");
      if (inside.length > 0) await link(`${folder}/`).waitFor();
      else await link(name).waitFor();
    }
    assert.equal(await page.locator("main img, main script").count(), 0);
    for (const name of names) {
      await show(account, "blob", "hostile", name);
      await page.locator("pre", { hasText: "hard to show" }).waitFor();
    }
    assert.equal(await page.title(), "Data · Stamp console");
    await show(account, "blobs", "hostile", "folder/");
    await page.getByRole("link", { name: "(empty)", exact: true }).click();
    await page.getByRole("heading", { name: "folder/" }).waitFor();
    await show(account, "blobs", "hostile", "folder/");
    await link("/").click();
    await link("inside").waitFor();
    await show(account, "blob", "hostile", "folder/../folder//inside");
    await page.getByText('services of Azure resolve "." and ".."').waitFor();
  });

  test("entities of every type keep their digits, and a filter that is wrong says so", async () => {
    await show(account, "tables", "everything");
    for (const text of ["9007199254740993", "1.5", "true", "AQI=", "2026-11-29T01:02:03", "0f8fad5b-d9cb-469f-a165-70867728950e", "<b>"])
      await page.getByRole("cell", { name: text }).first().waitFor();
    await page.getByText("3 entities").waitFor();
    await page.getByLabel("Filter").fill("Long eq 9007199254740993L");
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByText("1 entities").waitFor();
    await page.getByLabel("Filter").fill("Long eq");
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByRole("alert").getByText("InvalidInput").waitFor();
    await page.getByLabel("Filter").fill("PartitionKey eq 'none'");
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByText("No entity is as the filter says").waitFor();
  });

  test("a table goes into a file and from it into another table, every type as it was; what is there is kept or replaced", async () => {
    const { connectionString } = await bench.ask({ do: "status" });
    const tableOf = (name: string) => TableClient.fromConnectionString(connectionString, name, { allowInsecureConnection: true });
    const contentOf = async (table: TableClient): Promise<readonly unknown[]> => {
      const all: unknown[] = [];
      for await (const { etag: _, timestamp: __, ...entity } of table.listEntities({ disableTypeConversion: true })) all.push(entity);
      return all;
    };
    const { button, confirm, dialog } = controlsOf(() => page);
    const whole = await contentOf(tableOf("everything"));
    const choose = async (name: string, buffer: Buffer, replace = false): Promise<void> => {
      await button("Import").click();
      await dialog().locator("input[type=file]").setInputFiles({ name, mimeType: "text/plain", buffer });
      await dialog().getByLabel("Replace entities").setChecked(replace);
    };
    for (const format of ["csv", "jsonl"]) {
      await show(account, "tables", "everything");
      await button("Export").click();
      await dialog().getByLabel("As").selectOption(format);
      assert.deepEqual(await violationsIn(page), []);
      const begun = page.waitForEvent("download");
      await confirm("Download");
      const download = await begun;
      assert.equal(download.suggestedFilename(), `everything.${format}`);
      const file = readFileSync(await download.path());
      const copy = tableOf(`copied${format}`);
      await copy.createTable();
      await show(account, "tables", `copied${format}`);
      await choose(`any.${format}`, file);
      assert.deepEqual(await violationsIn(page), []);
      await confirm("Import");
      await page.getByText("3 entities written").waitFor();
      await page.getByRole("cell", { name: "9007199254740993" }).waitFor();
      assert.deepEqual(await contentOf(copy), whole);
      await copy.updateEntity({ partitionKey: "types", rowKey: "all", Text: "changed", Added: 1 }, "Merge");
      await choose(`any.${format}`, file);
      await confirm("Import");
      await page.getByText("0 entities written, 3 were there and stay").waitFor();
      assert.equal((await copy.getEntity("types", "all")).Text, "changed");
      await choose(`any.${format}`, file, true);
      await confirm("Import");
      await page.getByText("3 entities written").waitFor();
      assert.deepEqual(await contentOf(copy), whole);
    }
    const lines = Array.from({ length: 1_200 }, (_, at) => `{"PartitionKey":"many","RowKey":"${at}"}`);
    await choose("many.jsonl", Buffer.from([...lines, "{"].join("\n")));
    await dialog().getByRole("button", { name: "Import", exact: true }).click();
    await dialog().getByRole("alert").getByText("line 1201: no JSON").waitFor();
    await dialog().getByRole("alert").getByText("1,000 entities written before").waitFor();
    await page.keyboard.press("Escape");
    await choose("wrong.jsonl", Buffer.from('{"PartitionKey":"a/b","RowKey":"1"}'));
    await dialog().getByRole("button", { name: "Import", exact: true }).click();
    await dialog().getByRole("alert").getByText("lines 1 to 1: ").waitFor();
    await page.keyboard.press("Escape");
    await choose("picture.csv", onePixel);
    await dialog().getByRole("button", { name: "Import", exact: true }).click();
    await dialog().getByRole("alert").getByText("no text in UTF-8").waitFor();
    await page.keyboard.press("Escape");
  });

  test("messages at the front of a queue are shown and stay untaken", async () => {
    await show(account, "queues", "orders");
    await page.getByRole("cell", { name: "<order id='1'/>" }).waitFor();
    await page.getByRole("button", { name: "Load again" }).click();
    assert.equal(await page.getByRole("row").filter({ hasText: "<order" }).locator(".number").textContent(), "0");
    await show(account, "queues", "empty");
    await page.getByText("No message is visible").waitFor();
  });

  test("what is missing says so: a blob, a container, a table, a queue, an account", async () => {
    for (const [path, words] of [
      [[account, "blob", "photos", "gone"], "BlobNotFound"],
      [[account, "blobs", "gone"], "ContainerNotFound"],
      [[account, "tables", "gone"], "TableNotFound"],
      [[account, "queues", "gone"], "QueueNotFound"],
      [["nobody"], "nobody"],
      [[account, "files"], "no such kind of data"],
    ] as const) {
      await show(...path);
      await page.locator(".notice, .empty", { hasText: words }).first().waitFor();
    }
  });

  test("axe finds no violation on any page of the view, light and dark, from 400 to 2,560 pixels; nothing is wider", async () => {
    for (const colours of ["light", "dark"]) {
      await page.getByLabel("Colours").selectOption(colours);
      for (const width of [400, 1_280, 2_560]) {
        await page.setViewportSize({ width, height: 900 });
        for (const path of [
          [],
          [account],
          [account, "queues"],
          [account, "blobs", "photos"],
          [account, "blobs", "hostile", "folder/"],
          [account, "blob", "photos", "2026/may/sea.png"],
          [account, "blob", "photos", "long.txt"],
          [account, "blob", "hostile", "x".repeat(1_024)],
          [account, "tables", "everything"],
          [account, "queues", "orders"],
          [account, "queues", "empty"],
          [account, "tables", "gone"],
        ]) {
          await show(...path);
          await page.locator(".row:not(.head), .pairs, .empty:not(:has-text('Asking')), .notice").first().waitFor();
          assert.deepEqual(await violationsIn(page), [], `${path.join("/")}, ${colours}, ${width} px`);
          assert.equal(await page.evaluate("document.documentElement.scrollWidth"), width, `${path.join("/")}, ${width} px`);
        }
      }
    }
  });

  test("nothing went wrong in the page meanwhile", () => assert.deepEqual(bench.problems, []));
});

async function putBlobs(connectionString: string): Promise<void> {
  const service = BlobServiceClient.fromConnectionString(connectionString);
  const photos = service.getContainerClient("photos");
  await photos.create({ metadata: { owner: "sales" } });
  const put = (name: string, content: string | Buffer, options = {}): Promise<unknown> =>
    photos.getBlockBlobClient(name).upload(content, content.length, options);
  const sea = { metadata: { place: "Sylt" }, tags: { season: "spring" }, blobHTTPHeaders: { blobContentType: "text/html" } };
  await put("2026/may/sea.png", onePixel, sea);
  await photos.getBlobClient("2026/may/sea.png").createSnapshot();
  await put("block.json", JSON.stringify({ deep: { list: [1, 2] } }));
  await put("page.html", html, { blobHTTPHeaders: { blobContentType: "text/html" } });
  await put("empty", "");
  await put("long.txt", "line\n".repeat(40_000));
  await photos.getPageBlobClient("page.bin").create(1_024);
  const log = photos.getAppendBlobClient("log.txt");
  await log.create();
  await log.appendBlock("first line\n", 11);
  const hostile = service.getContainerClient("hostile");
  await hostile.create();
  for (const name of [...names, "folder/", "folder//inside"]) await hostile.getBlockBlobClient(name).upload("hard to show", 12);
}

async function putEntities(connectionString: string): Promise<void> {
  const table = TableClient.fromConnectionString(connectionString, "everything", { allowInsecureConnection: true });
  await table.createTable();
  await table.createEntity({
    partitionKey: "types",
    rowKey: "all",
    Text: "<b>bold</b>",
    Long: { type: "Int64", value: "9007199254740993" },
    Short: { type: "Int32", value: "-7" },
    Real: { type: "Double", value: "1.5" },
    Yes: true,
    Bytes: { type: "Binary", value: Buffer.from([1, 2]).toString("base64") },
    When: { type: "DateTime", value: "2026-11-29T01:02:03.1234567Z" },
    Id: { type: "Guid", value: "0f8fad5b-d9cb-469f-a165-70867728950e" },
  });
  await table.createEntity({ partitionKey: "", rowKey: "" });
  await table.createEntity({ partitionKey: "\u202Etxt.exe", rowKey: "<script>1", constructor: "a", toString: "b" });
}

async function putMessages(connectionString: string): Promise<void> {
  const service = QueueServiceClient.fromConnectionString(connectionString);
  await service.getQueueClient("empty").create({ metadata: { owner: "sales" } });
  const orders = service.getQueueClient("orders");
  await orders.create();
  await orders.sendMessage("<order id='1'/>");
  await orders.sendMessage("forever", { messageTimeToLive: -1 });
}
