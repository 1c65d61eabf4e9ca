/**
 * The wiki page of two editors, in the three strategies of the article "Managing concurrency".
 *
 *   node examples/wiki.ts
 */
import { updateBlob, updateEntity, withLease } from "@stamp/coordination";
import { container, table } from "./account.ts";

const pages = container("wiki");
const name = `page-${Date.now()}`;
const page = pages.getBlockBlobClient(name);
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const text = (content: Uint8Array | undefined): string => new TextDecoder().decode(content);
const put = (content: string, conditions = {}) => page.upload(content, content.length, { conditions });

await pages.createIfNotExists();

// Optimistic, by hand: both editors read the same version, and the second one to save learns that it has changed.
await put("Stamps are small.\n");
const { etag = "" } = await page.getProperties();
await put("Stamps are small.\nAnna was here.\n", { ifMatch: etag });
try {
  await put("Stamps are small.\nBen was here.\n", { ifMatch: etag });
  throw new Error("the second save was taken");
} catch (error) {
  if ((error as { statusCode?: number }).statusCode !== 412) throw error;
  console.log("optimistic: Ben's save is refused (412): Anna saved first; he sees her text and saves again");
}

// Optimistic, by `updateBlob`: the change is made again on what is there.
const add = (line: string) => updateBlob(pages, name, (content) => bytes(`${text(content)}${line}\n`));
await Promise.all([add("Ben was here."), add("Anna was here, too."), add("Ben again.")]);
const lines = text(await page.downloadToBuffer())
  .trim()
  .split("\n");
console.log(`optimistic: ${lines.length} lines, none lost`);
if (lines.length !== 5) throw new Error(`lines are missing: ${lines}`);

// Pessimistic: while Anna holds the lease, Ben can read but not save.
await withLease(pages, name, async (lease) => {
  await put("Ben's save").then(
    () => Promise.reject(new Error("a save under somebody else's lease was taken")),
    (error) => console.log(`pessimistic: Ben's save is refused (${error.statusCode}) while Anna edits`),
  );
  await page.upload("Anna's save", 11, { conditions: { leaseId: lease.leaseId } });
});

// Last writer wins: nobody is told.
await put("Ben's save");
await put("Anna's last save");
console.log(`last writer wins: ${await page.downloadToBuffer()}`);

// Entities: the same, with the ETag that every entity has.
const visits = table("wikivisits");
const visit = () => updateEntity(visits, "wiki", name, (entity) => ({ visits: Number(entity?.visits ?? 0) + 1 }));
await Promise.all(Array.from({ length: 10 }, visit));
const counted = (await visits.getEntity<{ visits: number }>("wiki", name)).visits;
console.log(`entity: ${counted} visits counted by ten writers at once`);
if (counted !== 10) throw new Error(`${counted} visits are counted, not 10`);
