/** `stamp geo diverged --get`: which write is fetched, and which files there are afterwards. */
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, mock, test } from "node:test";
import { ok, refused } from "@stamp/base";
import { type Handlers, type Listener, served } from "@stamp/ports";
import { GrpcTransport } from "@stamp/ports-node";
import { Accounts, FrontEnd, LocationService, LockService } from "@stamp/wire";
import { Command } from "commander";
import type { CommandError } from "../exit.ts";
import { addWords } from "../top-level.ts";

type Answer = Record<string, unknown>;
type Read = (request: { readonly place: { readonly sequence: bigint }; readonly startBytes: bigint }) => unknown;

const folder = mkdtempSync(join(tmpdir(), "stamp-get-diverged-"));
const out = join(folder, "cat.jpg");
/** The stamp has no secret. */
const data = join(folder, "..", "stamp-get-diverged-without-secret");
let report: Answer | undefined = {};
let read: Read = () => assert.fail("no content is asked for");
const transport = new GrpcTransport({});
let listener: Listener;

/** A stamp, whose processes are at one address. */
before(async () => {
  const asked = () => assert.fail("the location service is asked");
  const services = [
    served(LockService, { getLease: async () => ok({ address: listener.address }) } as unknown as Handlers<typeof LockService>),
    served(Accounts, {
      listDiverged: async ({ account, marker }: Answer) => {
        assert.equal(account, "acme");
        if (report === undefined) return refused("notFound", "conflict", "there is no account acme");
        const { rows = [], ...rest } = report as { readonly rows?: readonly Answer[] };
        // One row in a page.
        const page = Number(marker);
        return ok({
          complete: true,
          ...rest,
          rows: rows.slice(page, page + 1),
          nextMarker: page + 1 < rows.length ? String(page + 1) : "",
        });
      },
    } as unknown as Handlers<typeof Accounts>),
    served(FrontEnd, { readDiverged: async (request: never) => read(request) } as unknown as Handlers<typeof FrontEnd>),
    served(LocationService, { getAccount: asked, listDiverged: asked } as unknown as Handlers<typeof LocationService>),
  ];
  listener = await transport.serve("127.0.0.1:0", services);
  // The first front-end is away.
  const [away, here] = ["127.0.0.1:1", listener.address];
  process.env.STAMP_PROCESSES = `lock-service=${here} front-end-1=${away} front-end-2=${here}`;
});
after(async () => {
  delete process.env.STAMP_PROCESSES;
  await listener.close(0);
  await transport.close();
  rmSync(folder, { recursive: true, force: true });
});

async function get(...args: readonly string[]): Promise<{ readonly error: CommandError | undefined; readonly out: string }> {
  const lines: string[] = [];
  const log = mock.method(console, "log", (line: string) => void lines.push(line));
  const words = ["geo", "diverged", "acme", ...args];
  const program = new Command("stamp");
  await addWords(program, words);
  const error = await program.parseAsync([...words, "--data", data], { from: "user" }).then(
    () => undefined,
    (thrown: CommandError) => thrown,
  );
  log.mock.restore();
  return { error, out: lines.join("\n") };
}

const row = (sequence: bigint, deleted = false, operation = 3n): Answer => ({
  operation,
  sequence,
  kind: "blob",
  name: "photos",
  blob: "2026/cat.jpg",
  deleted,
  key: Uint8Array.of(5, Number(sequence)),
  ...(deleted ? {} : { modifiedMs: 1_795_687_200_999n }),
});
/** Pages of three bytes of a content of seven. */
const content = Uint8Array.of(1, 2, 3, 4, 5, 6, 7);
const pages: Read = ({ startBytes }) =>
  ok({ payload: content.subarray(Number(startBytes), Number(startBytes) + 3), contentLength: BigInt(content.length) });

test("geo diverged --get: the newest write is fetched page by page, and named; a later deletion is told", async () => {
  const others = [
    { ...row(50n), blob: "2026/dog.jpg" },
    { ...row(60n), kind: "blob-part" },
  ];
  report = { rows: [row(7n), row(9n, true), row(8n), row(99n, false, 2n), ...others] };
  const asked: unknown[] = [];
  let busy = true;
  read = (request) => {
    if (request.startBytes === 3n && busy) {
      busy = false;
      return refused("unavailable", "notReady", "it restarts");
    }
    asked.push([request.place.sequence, request.startBytes]);
    return pages(request);
  };
  const got = await get("--get", "photos/2026/cat.jpg", "--out", out, "--json");
  assert.equal(got.error, undefined);
  const { operation, sequence, writtenAt, deleted, bytes, file } = JSON.parse(got.out) as Answer;
  assert.deepEqual({ operation, sequence, deleted, bytes, file }, { operation: 3, sequence: 8, deleted: true, bytes: 7, file: out });
  assert.equal(writtenAt, new Date(1_795_687_200_999).toISOString());
  assert.deepEqual(
    asked,
    [0n, 3n, 6n].map((at) => [8n, at]),
  );
  assert.deepEqual(Uint8Array.from(readFileSync(out)), content);
  assert.deepEqual(readdirSync(folder), ["cat.jpg"]);
});

test("geo diverged --get: a file that is there stays as it is, also if it comes while the content is fetched", async () => {
  writeFileSync(out, "mine");
  read = () => assert.fail("nothing is asked");
  const there = await get("--get", "photos/2026/cat.jpg", "--out", out);
  assert.match(String(there.error?.message), /is there already: it is not overwritten.*--out FILE/);
  rmSync(out);
  read = (request) => {
    if (request.startBytes === 6n) writeFileSync(out, "mine");
    return pages(request);
  };
  const late = await get("--get", "photos/2026/cat.jpg", "--out", out);
  assert.match(String(late.error?.message), /cat.jpg was made by somebody else meanwhile: it is not overwritten/);
  assert.equal(readFileSync(out, "utf8"), "mine");
  assert.deepEqual(readdirSync(folder), ["cat.jpg"], "no part of the content stays");
  rmSync(out);
});

test("geo diverged --get: a refusal in the middle leaves no file, and says why", async () => {
  read = (request) =>
    request.startBytes === 0n ? pages(request) : refused("notFound", "unknownExtent", "the bytes are not there any more");
  const failed = await get("--get", "photos/2026/cat.jpg", "--out", out);
  assert.match(String(failed.error?.message), /the bytes are not there any more/);
  assert.ok(!existsSync(out) && readdirSync(folder).length === 0, readdirSync(folder).join());
});

const message = async (...args: readonly string[]): Promise<string> => String((await get(...args)).error?.message);

test("geo diverged --get: what no report names, and words that make no sense", async () => {
  report = { rows: [row(8n)], complete: false, trouble: "range 12: no connection to h:1" };
  assert.match(
    await message("--get", "photos/2026/cow.jpg", "--out", out),
    /this stamp's report does not name blob photos\/2026\/cow.jpg; the report is not complete: range 12: no connection to h:1/,
  );
  report = { rows: [row(9n, true)] };
  assert.match(await message("--get", "photos/2026/cat.jpg", "--out", out), /the report names only deletions of photos\/2026\/cat.jpg$/);
  assert.match(await message("--get", "photos", "--out", out), /it is CONTAINER\/BLOB/);
  assert.match(await message("--get", "photos/a", "--forget", "--stamp", "north-1"), /either --get or --forget/);
  assert.match(await message("--out", out), /--out goes with --get only/);
});

test("geo diverged --get: it is run at the deposed stamp: elsewhere the command says where, and it takes no other place", async () => {
  for (const none of [undefined, {}]) {
    report = none;
    assert.match(
      await message("--get", "photos/a", "--out", out),
      /no report about account acme. Run the command on a host of the stamp that was deposed, with its --data; which stamp: .\/stamp geo diverged acme/,
    );
  }
  for (const elsewhere of [
    ["--stamp", "north-1"],
    ["--at", "127.0.0.1:7900"],
    ["--secret-file", data],
  ]) {
    const { error } = await get("--get", "photos/a", "--out", out, ...elsewhere);
    assert.equal(error?.exitCode, 2);
    assert.match(String(error?.message), new RegExp(`^${elsewhere[0]} goes without --get, which asks the stamp of --data`));
  }
  report = { rows: [row(8n)] };
  read = () => refused("unimplemented", "unknownMethod", "it does not serve that");
  assert.match(
    await message("--get", "photos/2026/cat.jpg", "--out", out),
    /this stamp runs a release that does not read the blobs of a report/,
  );
});
