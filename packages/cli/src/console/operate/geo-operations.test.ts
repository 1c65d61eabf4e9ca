import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { ok, refused } from "@stamp/base";
import type { DivergedReport, Geo } from "@stamp/console-page";
import { DivergedRowSchema, LocatedAccountSchema, LocationStampSchema, StampState } from "@stamp/wire";
import { geoLists, geoOperations } from "./geo-operations.ts";

const never = new AbortController().signal;
const syncedMs = Date.parse("2026-11-29T12:00:00Z");

const copied = create(LocatedAccountSchema, {
  name: "acme",
  stamp: "north-1",
  secondary: "south-1",
  state: "protected",
  seeded: true,
  shipping: { complete: true, lastSyncMs: BigInt(syncedMs), nowMs: BigInt(syncedMs + 3_000), pendingCommits: 40n, pendingBytes: 2_048n },
});

/** A location service with two stamps. `accounts`: names of accounts without a copy, beside acme. */
function world({ accounts = 0, refusal = "", under = {} } = {}) {
  const asked: unknown[] = [];
  const all = [copied, ...Array.from({ length: accounts }, (_, number) => create(LocatedAccountSchema, { name: `alone${number}` }))];
  const client = {
    listStamps: async () =>
      ok({
        stamps: [create(LocationStampSchema, { name: "north-1", state: StampState.OPEN, answers: true, usedBytes: 1n, totalBytes: 4n })],
      }),
    listAccounts: async ({ after, limit }: { readonly after: string; readonly limit: number }) => {
      const from = after === "" ? 0 : all.findIndex(({ name }) => name === after) + 1;
      asked.push(`list ${from}`);
      return ok({ accounts: all.slice(from, from + limit), more: from + limit < all.length });
    },
    getAccount: async () => ok({ ...copied, ...under }),
    listDiverged: async ({ stamp, marker }: { readonly stamp: string; readonly marker: string }) =>
      stamp === "north-1"
        ? ok({ rows: [], complete: true, trouble: "", nextMarker: "" })
        : ok({
            // A page is that of one range. The first of this report is empty, and the others have no end.
            rows: marker === "" ? [] : [create(DivergedRowSchema, { kind: "blob", name: "photos", blob: marker, operation: 7n })],
            complete: false,
            trouble: "",
            nextMarker: `${marker}a`,
          }),
    failOverAccount: async (request: object) => {
      asked.push(request);
      return refusal === "" ? ok({ ...copied, kind: "failover", step: "draining" }) : refused("failedPrecondition", "conflict", refusal);
    },
    giveUpOperation: async (request: object) => {
      asked.push(request);
      return ok(copied);
    },
  };
  const place = { at: "127.0.0.1:7900", client: client as never };
  const list = async (path: string, query = ""): Promise<object | undefined> => geoLists(place)[path]?.(new URLSearchParams(query));
  const run = async (what: string, fields: object): Promise<object | undefined> =>
    geoOperations(place)[`/api/${what}`]?.(fields as never, never);
  return { list, run, asked };
}

test("geo: stamps and copies are told with lag, backlog and the loss of a forced failover, in the words of the command line", async () => {
  const { stamps, copies, more } = (await world().list("/api/geo")) as Geo;
  assert.deepEqual([stamps[0]?.name, stamps[0]?.state, stamps[0]?.usedBytes], ["north-1", "open", 1]);
  assert.deepEqual([copies[0]?.lagSeconds, copies[0]?.lag, more], [3, "3 s", false]);
  assert.match(copies[0]?.loss ?? "", /^Last Sync Time 2026-11-29T12:00:00.000Z: .* later ones may be lost.*lacks 40 commits, 2.0 KiB$/);
});

test("geo: accounts without a copy are left out, and of very many only the first 5,000 are looked at", async () => {
  const { list, asked } = world({ accounts: 6_000 });
  const { copies, more } = (await list("/api/geo")) as Geo;
  assert.deepEqual([copies.length, more, asked.length], [1, true, 5]);
});

test("geo: a stamp alone has no location service, and says so", async () => {
  const lists = geoLists(undefined);
  assert.deepEqual(await lists["/api/geo"]?.(new URLSearchParams()), { at: "", stamps: [], copies: [], more: false });
  await assert.rejects(async () => geoOperations(undefined)["/api/give-up"]?.({ account: "acme" }, never), /knows no location service/);
});

test("geo: a failover names the stamp that was shown; a forced one needs the word that writes may be lost", async () => {
  const { run, asked } = world();
  assert.deepEqual(await run("fail-over", { account: "acme", to: "south-1", forced: false }), { step: "failover, draining" });
  await assert.rejects(run("fail-over", { account: "acme", to: "south-1", forced: true }), /needs your word/);
  await assert.rejects(run("fail-over", { account: "acme", to: "south-1", forced: true, acceptLoss: "yes" }), /needs your word/);
  await assert.rejects(run("fail-over", { account: "acme", forced: false }), /names no to/);
  await run("fail-over", { account: "acme", to: "south-1", forced: true, acceptLoss: true });
  const common = { account: "acme", stamp: "south-1", anyway: false };
  assert.deepEqual(asked, [
    { ...common, forced: false, acceptLoss: false },
    { ...common, forced: true, acceptLoss: true },
  ]);
  const refusal = "the copy is not complete: it is still seeded";
  await assert.rejects(world({ refusal }).run("fail-over", { account: "acme", to: "south-1" }), new RegExp(refusal));
});

test("geo: an operation is given up only while it is at the step that was shown", async () => {
  const { run, asked } = world({ under: { kind: "failover", step: "draining" } });
  await assert.rejects(run("give-up", { account: "acme" }), /names no step/);
  await assert.rejects(run("give-up", { account: "acme", step: "failover, waiting" }), /another one by now: failover, draining/);
  assert.deepEqual(asked, []);
  await run("give-up", { account: "acme", step: "failover, draining" });
  assert.deepEqual(asked, [{ account: "acme" }]);
  await assert.rejects(world().run("give-up", { account: "acme", step: "failover, draining" }), /the operation is over/);
});

test("geo: reports of deposed stamps are read over empty pages, up to a bound; a stamp without a report is left out", async () => {
  const { items } = (await world().list("/api/diverged", "account=acme")) as { readonly items: readonly DivergedReport[] };
  assert.deepEqual(
    items.map(({ stamp, trouble, more, rows }) => [stamp, trouble, more, rows.length]),
    [["south-1", "the stamp still makes it", true, 99]],
  );
  assert.deepEqual(items[0]?.rows[0], ["7", "blob written", "photos", "a", "-", "-"]);
});
