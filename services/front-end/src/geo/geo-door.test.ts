/** Door for another stamp: a part of a scan goes to every range that has keys of it, each range gets its own keys and rows only. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { allRules, concatBytes, featureLevel, type Outcome, ok, refused, toHex } from "@stamp/base";
import { roleWithoutRow } from "@stamp/geo";
import { accountKeys } from "@stamp/objects";
import type { CallContext, World } from "@stamp/ports";
import {
  CopyReportSchema,
  GeoPinDataRequestSchema,
  GeoSeedRequestSchema,
  GeoShipRequestSchema,
  GeoWriteDataRequestSchema,
  type ScannedPart,
  TellVersionsRequestSchema,
} from "@stamp/wire";
import type { Accounts } from "../accounts/accounts.ts";
import type { Router } from "../routing/router.ts";
import type { Copies } from "./copies.ts";
import { GeoRefusals, geoDoorHandlers } from "./geo-door.ts";
import { NamelessPeers } from "./nameless-peers.ts";

const account = "acme";
/** 28 November 2026, in milliseconds since 1970. */
const nowMs = 1_795_824_000_000;
const { low, high } = accountKeys(account);
const key = (name: string): Uint8Array => concatBytes([low, new TextEncoder().encode(name)]);
const context = { deadlineMs: 1_000, signal: new AbortController().signal } as unknown as CallContext;

/** A door of a stamp that has these ends of ranges; the last range has none. */
function doorOf(ends: readonly Uint8Array[], refuses?: string, ownLevel?: number, copied: { readonly queues?: true } = {}) {
  const applied: { readonly at: string; readonly part: ScannedPart }[] = [];
  const router = {
    applyScanned: async (route: { readonly key: Uint8Array }, partOf: (rangeHigh: Uint8Array) => ScannedPart) => {
      const end = ends.find((each) => toHex(route.key) < toHex(each)) ?? new Uint8Array(0);
      const part = partOf(end);
      if (refuses === toHex(part.lowKey)) return refused("unavailable", "notReady", "it is moved");
      applied.push({ at: toHex(route.key), part });
      return ok({ rangeHigh: end });
    },
  } as unknown as Router;
  const role = { ...roleWithoutRow, role: "unseeded", epoch: 3, ...copied } as const;
  const accounts = { roleNow: async () => ok(role) } as unknown as Accounts;
  const refusals = new GeoRefusals();
  const handlers = geoDoorHandlers(
    { rules: allRules, clock: { wallMs: () => nowMs } } as unknown as World,
    accounts,
    router,
    {} as Copies,
    refusals,
    new NamelessPeers({ monotonicMs: () => 0 }),
    () => ownLevel,
  );
  const seed = (lowKey: Uint8Array, highKey: Uint8Array, names: readonly string[], epoch = 3n, table = "Entity", level = 1) => {
    const rows = names.map((name) => ({ key: key(name), value: new Uint8Array(1) }));
    const part = { epoch, sequence: 9n, lastTicket: 9n, lowKey, highKey, rows };
    return handlers.seed(create(GeoSeedRequestSchema, { account, epoch, table, level, part }), context);
  };
  return { applied, seed, refusals };
}

const shown = ({ at, part }: { readonly at: string; readonly part: ScannedPart }) => ({
  at,
  bounds: [toHex(part.lowKey), toHex(part.highKey)],
  rows: part.rows.map((row) => toHex(row.key)),
});

test("geo door: each range gets the part of a scan between its own bounds, and no row of another range", async () => {
  const { applied, seed } = doorOf([key("c"), key("m")]);
  assert.ok((await seed(low, high, ["a", "b", "c", "d", "m", "z"])).ok);
  const [a, b, c, d, m, z] = ["a", "b", "c", "d", "m", "z"].map((name) => toHex(key(name)));
  assert.deepEqual(applied.map(shown), [
    { at: toHex(low), bounds: [toHex(low), c], rows: [a, b] },
    { at: c, bounds: [c, m], rows: [c, d] },
    { at: m, bounds: [m, toHex(high)], rows: [m, z] },
  ]);
});

test("geo door: a part that ends within a range goes to no range behind it, and is not answered if a range refuses", async () => {
  const { applied, seed } = doorOf([key("c"), key("m")]);
  assert.ok((await seed(key("b"), key("d"), ["b", "c"])).ok);
  assert.deepEqual(
    applied.map(({ part }) => [toHex(part.lowKey), toHex(part.highKey), part.rows.length]),
    [
      [toHex(key("b")), toHex(key("c")), 1],
      [toHex(key("c")), toHex(key("d")), 1],
    ],
  );
  const refusing = doorOf([key("c"), key("m")], toHex(key("c")));
  assert.equal((await refusing.seed(low, high, ["a", "d"])).ok, false);
  const outside = await doorOf([]).seed(new Uint8Array([0]), high, []);
  assert.ok(!outside.ok && /outside of its account/.test(outside.failure.message));
});

test("geo door: what was shipped under another role epoch is refused and counted", async () => {
  const { applied, seed, refusals } = doorOf([]);
  const stale = await seed(low, high, ["a"], 2n);
  assert.deepEqual([stale.ok, !stale.ok && stale.failure.reason, refusals.staleEpochs], [false, "staleRoleEpoch", 1]);
  assert.ok((await seed(low, high, ["a"])).ok);
  assert.deepEqual([applied.length, refusals.staleEpochs], [1, 1]);
});

test("geo door: rows of a table that this release does not know are refused, and the text says that releases may differ", async () => {
  const { applied, seed } = doorOf([]);
  const unknown = await seed(low, high, ["a"], 3n, "Graph");
  assert.ok(!unknown.ok);
  const { reason, message } = unknown.failure;
  assert.deepEqual(
    [reason, message, applied.length],
    ["badRequest", 'rows of table "Graph" are not shipped: this stamp may run another release', 0],
  );
});

test("geo door: rows of queues are taken only for an account whose queues are copied", async () => {
  const without = doorOf([]);
  const refusal = await without.seed(low, high, ["a"], 3n, "Message");
  assert.ok(!refusal.ok && /rows of table Message are not copied for account acme/.test(refusal.failure.message));
  assert.equal(without.applied.length, 0);
  const { applied, seed } = doorOf([], undefined, undefined, { queues: true });
  assert.ok((await seed(low, high, ["a"], 3n, "Message")).ok);
  assert.equal(applied.length, 1);
});

type Note = (name: string, value: unknown) => () => Promise<Outcome<unknown>>;

/** Doors of stamps that have one account, by their callers. `note` makes the functions behind the door. */
function doorFor(note: Note) {
  const router = {
    applyShipped: note("ship", {}),
    applyScanned: note("seed", { rangeHigh: new Uint8Array(0) }),
    shippedVersions: note("tellVersions", [{}]),
    writeData: note("writeData", { places: [], pinTermMs: 1 }),
    pinData: note("pinData", []),
  } as unknown as Router;
  const copies = { note: note("report", {}) } as unknown as Copies;
  const clock = { nowMs: 0, monotonicMs: () => clock.nowMs };
  const nameless = new NamelessPeers(clock);
  /** `peer`: the account's other stamp. */
  const callsAs = async (
    caller: string | undefined,
    callerName: string | undefined,
    peer: string | undefined,
    named: "primary" | "secondary" | "removed" = "secondary",
    level: number | "unheard" = 4,
  ) => {
    const role = {
      ...roleWithoutRow,
      role: named,
      epoch: 3,
      ...(peer === undefined ? {} : { peer }),
    } as const;
    const accounts = { roleNow: async () => ok(role) } as unknown as Accounts;
    const world = { rules: allRules, clock: { monotonicMs: () => 0, wallMs: () => nowMs } } as unknown as World;
    const heard = () => (level === "unheard" ? undefined : level);
    const door = geoDoorHandlers(world, accounts, router, copies, new GeoRefusals(), nameless, heard);
    const by = { ...context, caller, callerName } as CallContext;
    const epoch = 3n;
    const part = { epoch, sequence: 9n, lastTicket: 9n, lowKey: low, highKey: high, rows: [] };
    const shipment = { epoch, name: key("a"), commits: [] };
    const base = { account, epoch, table: "Blob" };
    return {
      ship: () => door.ship(create(GeoShipRequestSchema, { ...base, knownLevel: featureLevel, shipment }), by),
      seed: () => door.seed(create(GeoSeedRequestSchema, { ...base, knownLevel: featureLevel, part }), by),
      writeData: () => door.writeData(create(GeoWriteDataRequestSchema, { account, epoch, name: key("a") }), by),
      pinData: () => door.pinData(create(GeoPinDataRequestSchema, { account, epoch, name: key("a") }), by),
      tellVersions: () => door.tellVersions(create(TellVersionsRequestSchema, { ...base, names: [key("a")] }), by),
      report: () => door.report(create(CopyReportSchema, { account, epoch }), by),
    };
  };
  return { callsAs, nameless, clock };
}

test("geo door: a certificate of another stamp than the account's other one is refused by every method, and the right one is served", async () => {
  const called: string[] = [];
  const note = (name: string, value: unknown) => async () => {
    called.push(name);
    return ok(value);
  };
  const { callsAs } = doorFor(note);
  for (const [callerName, peer, isServed] of [
    ["north-1", "north-1", true],
    ["east-1", "north-1", false],
    ["north-1+east-1", "north-1", false],
    ["north-1", undefined, false],
  ] as const)
    for (const method of ["ship", "seed", "writeData", "pinData", "tellVersions", "report"] as const) {
      called.length = 0;
      const door = await callsAs("geo-peer", callerName, peer, method === "tellVersions" ? "primary" : "secondary");
      const answer = await door[method]();
      const what = `${method} as ${callerName}, other stamp ${peer}`;
      if (isServed) assert.deepEqual([answer.ok, called], [true, [method]], `${what}: ${JSON.stringify(answer)}`);
      else {
        assert.ok(!answer.ok && answer.failure.code === "permissionDenied" && answer.failure.applied === "no", what);
        assert.match(
          answer.failure.message,
          new RegExp(`the caller has proven to be stamp ${callerName.replace("+", " by its secret and ")}`),
        );
        assert.deepEqual(called, [], what);
      }
    }
  // A shipment to a copy that was removed since is of a stale role epoch: its stamp ships on under another one, or ends.
  called.length = 0;
  const removed = await callsAs("geo-peer", "north-1", undefined, "removed");
  for (const method of ["ship", "seed", "writeData", "pinData"] as const) {
    const answer = await removed[method]();
    assert.ok(!answer.ok && answer.failure.reason === "staleRoleEpoch", `${method}: ${JSON.stringify(answer)}`);
  }
  const elsewhere = await (await callsAs("geo-peer", "east-1", "north-1", "removed")).ship();
  assert.ok(!elsewhere.ok && elsewhere.failure.code === "permissionDenied");
  assert.deepEqual(called, []);
  // Two stamps with one secret and no certificates are one to each other.
  for (const caller of ["partition-server", undefined]) assert.ok((await (await callsAs(caller, undefined, "north-1")).ship()).ok);
});

test("geo door: what says no stamp, as releases before gave it away, is taken below feature level 4 only, by every method", async () => {
  const called: string[] = [];
  const note = (name: string, value: unknown) => async () => {
    called.push(name);
    return ok(value);
  };
  const methods = ["ship", "seed", "writeData", "pinData", "tellVersions", "report"] as const;
  const { callsAs } = doorFor(note);
  for (const [caller, name] of [
    ["geo-peer", undefined],
    ["partition-server", "partition-server"],
  ] as const)
    for (const method of methods) {
      const told = async (level: number | "unheard") => {
        called.length = 0;
        const door = await callsAs(caller, name, "north-1", method === "tellVersions" ? "primary" : "secondary", level);
        return door[method]();
      };
      const before = await told(3);
      assert.deepEqual([before.ok, called], [true, [method]], `${caller} ${method}: ${JSON.stringify(before)}`);
      for (const [level, code] of [
        [4, "permissionDenied"],
        ["unheard", "unavailable"],
      ] as const) {
        const answer = await told(level);
        assert.ok(!answer.ok && answer.failure.code === code && answer.failure.applied === "no", `${caller} ${method} ${level}`);
        assert.deepEqual(called, []);
      }
    }
});

test("geo door: a stamp that says no name below the feature level is told of, until it proves one or has been silent for five minutes", async () => {
  const { callsAs, nameless, clock } = doorFor((_name, value) => async () => ok(value));
  const call = async (caller: string | undefined, name: string | undefined, level: number | "unheard" = 3) =>
    (await callsAs(caller, name, "north-1", "secondary", level)).report();
  // A stamp with the same whole secret, as all stamps of one machine have, is served at every level.
  await call(undefined, undefined);
  await call("geo-peer", undefined, 4);
  await call("geo-peer", undefined, "unheard");
  assert.deepEqual(nameless.names, []);
  for (const [caller, name] of [
    ["geo-peer", undefined],
    ["partition-server", "partition-server-1"],
  ] as const) {
    assert.ok((await call(caller, name)).ok);
    assert.deepEqual(nameless.names, ["north-1"]);
    await call("geo-peer", "east-1");
    assert.deepEqual(nameless.names, ["north-1"], "another stamp proves another name");
    await call("geo-peer", "north-1");
    assert.deepEqual(nameless.names, []);
  }
  await call("geo-peer", undefined);
  clock.nowMs += 300_000;
  assert.deepEqual(nameless.names, ["north-1"]);
  clock.nowMs += 1;
  assert.deepEqual(nameless.names, []);
});

test("geo door: rows of a stamp with a higher feature level are refused, until this stamp has that level", async () => {
  const [unheard, older, same] = [doorOf([]), doorOf([], undefined, 1), doorOf([], undefined, 2)];
  for (const { seed, applied } of [unheard, older]) {
    const refusal = await seed(low, high, ["a"], 3n, "Entity", 2);
    assert.ok(!refusal.ok && refusal.failure.reason === "newerFormat", JSON.stringify(refusal));
    assert.match(refusal.failure.message, /level 2 are shipped to a stamp of feature level 1: upgrade the copy's stamp/);
    assert.ok((await seed(low, high, ["a"], 3n, "Entity", 1)).ok);
    assert.equal(applied.length, 1);
  }
  assert.ok((await same.seed(low, high, ["a"], 3n, "Entity", 2)).ok);
});

test("geo door: rows of blobs of a release that sends no handles are refused from feature level 4 on, those of other tables are not", async () => {
  const asked = async (ownLevel: number, table: string) => {
    const answer = await doorOf([], undefined, ownLevel).seed(low, high, ["a"], 3n, table, 1);
    return answer.ok ? "applied" : `${answer.failure.code} ${answer.failure.reason}`;
  };
  assert.deepEqual([await asked(3, "Blob"), await asked(4, "Entity")], ["applied", "applied"]);
  assert.equal(await asked(4, "Blob"), "failedPrecondition newerFormat");
});
