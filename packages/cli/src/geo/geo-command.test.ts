/** `stamp geo` and `stamp account migrate` against a location service that answers from a table. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, mock, test } from "node:test";
import { ok, refused } from "@stamp/base";
import { type Handlers, type Listener, served } from "@stamp/ports";
import { GrpcTransport } from "@stamp/ports-node";
import { LocationService } from "@stamp/wire";
import { Command } from "commander";
import { type CommandError, exitCodes } from "../exit.ts";
import { addWords } from "../top-level.ts";

const acme = { name: "acme", stamp: "north-1", secondary: "south-1", seeded: true, state: "protected", epoch: 1n, operation: 4n };
const draining = {
  ...acme,
  operation: 5n,
  state: "draining",
  kind: "failover",
  step: "draining",
  target: "south-1",
  trouble: "south-1 is slow",
};
const over = { ...acme, stamp: "south-1", secondary: "north-1", seeded: false, state: "seeding", epoch: 5n, operation: 5n };

type Answer = Record<string, unknown>;
let asked: [string, Answer][] = [];
/** Answers of GetAccount, in order; the last one stays. */
let states: Answer[] = [];
let begun: Answer = draining;
/** Answers of ProposeMoves, in order; the last one stays. */
let proposed: Answer[] = [];
let diverged: (request: Answer) => unknown = () => ok({ complete: true });

const transport = new GrpcTransport({});
let listener: Listener;
before(async () => {
  const begins = (name: string) => async (request: Answer) => {
    asked.push([name, request]);
    if (request.forced === true && request.acceptLoss !== true)
      return refused("invalidArgument", "badRequest", "a forced failover of account acme loses what its primary has not shipped");
    return ok(begun);
  };
  const handlers = {
    failOverAccount: begins("failOver"),
    protectAccount: begins("protect"),
    unprotectAccount: begins("unprotect"),
    migrateAccount: begins("migrate"),
    declareStampLost: async (request: Answer) => {
      asked.push(["lost", request]);
      if (request.acceptLoss !== true) return refused("invalidArgument", "badRequest", "that needs --accept-loss");
      return ok({ name: "north-1", location: "north", state: 2, lost: true, owed: 3 });
    },
    giveUpOperation: begins("giveUp"),
    proposeMoves: async () => ok(proposed.length > 1 ? proposed.shift() : proposed[0]),
    forgetDiverged: async (request: Answer) => {
      asked.push(["forget", request]);
      return request.marker === "" ? ok({ rows: 500, nextMarker: "Entity/05" }) : ok({ rows: 3 });
    },
    listDiverged: async (request: Answer) => {
      asked.push(["diverged", request]);
      return diverged(request);
    },
    getAccount: async () => ok(states.length > 1 ? states.shift() : states[0]),
    listAccounts: async () => ok({ accounts: [acme, { name: "alone", stamp: "north-1", state: "single" }], more: false }),
  };
  const service = served(LocationService, handlers as unknown as Handlers<typeof LocationService>);
  listener = await transport.serve("127.0.0.1:0", [service]);
});
after(async () => {
  await listener.close(0);
  await transport.close();
});

interface Ran {
  /** The error that the command ended with; undefined: none. */
  readonly error: CommandError | undefined;
  readonly out: string;
  readonly said: string;
}

/** Runs a command in this process. */
async function stamp(...args: readonly string[]): Promise<Ran> {
  asked = [];
  const [out, said]: [string[], string[]] = [[], []];
  const log = mock.method(console, "log", (line: string) => void out.push(line));
  const write = mock.method(process.stderr, "write", (line: string) => said.push(line) > 0);
  const program = new Command("stamp");
  await addWords(program, args);
  const ran = program.parseAsync([...args, "--at", listener.address], { from: "user" });
  const error = await ran.then(
    () => undefined,
    (thrown: CommandError) => thrown,
  );
  log.mock.restore();
  write.mock.restore();
  return { error, out: out.join("\n"), said: said.join("") };
}

test("geo diverged: a report larger than a pipe is whole at a slow reader, with exit code 0", { timeout: 120_000 }, async () => {
  const [pages, rowsInPage] = [20, 500];
  states = [over];
  diverged = ({ stamp: name, marker }) => {
    const page = Number(marker || "0");
    const rows = Array.from({ length: rowsInPage }, (_, i) => ({
      operation: 5n,
      sequence: BigInt(page * rowsInPage + i),
      kind: "row",
      key: new Uint8Array(40),
    }));
    if (name !== "north-1") return ok({ complete: true });
    return ok({ complete: true, rows, nextMarker: page + 1 < pages ? String(page + 1) : "" });
  };
  const args = [join(import.meta.dirname, "../main.ts"), "geo", "diverged", "acme", "--json", "--at", listener.address];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  await once(child.stdout, "readable");
  const [ended, out] = await Promise.all([once(child, "close"), text(child.stdout)]);
  diverged = () => ok({ complete: true });
  assert.equal(ended[0], 0);
  assert.ok(out.length > 1024 * 1024, `${out.length} characters are no large report`);
  const [, north] = JSON.parse(out) as { stamp: string; rows: unknown[] }[];
  assert.deepEqual([north?.stamp, north?.rows.length], ["north-1", pages * rowsInPage]);
});

test("geo failover: says what it waits for, ends when the copy is primary, and shows where the account is then", async () => {
  [begun, states] = [draining, [draining, draining, draining, draining, draining, over]];
  const ran = await stamp("geo", "failover", "acme", "--planned", "--to", "south-1");
  assert.equal(ran.error, undefined);
  assert.match(ran.out, /acme +south-1 +north-1 +seeding/);
  assert.match(ran.said, /failover of account acme: failover, draining: south-1 is slow/);
  const [, request] = asked[0] ?? [];
  assert.deepEqual([request?.account, request?.forced, request?.acceptLoss, request?.stamp], ["acme", false, false, "south-1"]);

  [begun, states] = [draining, [over]];
  const json = await stamp("geo", "failback", "acme", "--to", "south-1", "--json");
  assert.equal(json.error, undefined);
  const { stamp: primary, epoch, lagSeconds, pendingBytes, seedingPercent } = JSON.parse(json.out);
  assert.deepEqual([primary, epoch, lagSeconds, pendingBytes, seedingPercent], ["south-1", 5, null, null, null], "nothing is made up");
});

test("geo failover: one that is taken back fails, with the reason that was seen last", async () => {
  [begun, states] = [draining, [draining, { ...acme, operation: 5n }]];
  const ran = await stamp("geo", "failover", "acme", "--planned");
  assert.equal(ran.error?.exitCode, exitCodes.failed);
  assert.match(ran.error.message, /acme was taken back: south-1 is slow\. .* as before.*geo failover acme --forced/);
});

test("geo failover: with --no-wait it ends when the operation is recorded", async () => {
  [begun, states] = [draining, []];
  const ran = await stamp("geo", "failover", "acme", "--planned", "--no-wait");
  assert.equal(ran.error, undefined);
  assert.match(ran.out, /acme +north-1 +south-1 +draining +yes +not known +not known +- +failover, draining\nacme: south-1 is slow/);
});

test("geo failover: a forced one ends when the copy is primary, and says which Last Sync Time it began with", async () => {
  const forced = { ...acme, kind: "forced", step: "promoting", target: "south-1", operation: 5n, acceptedSyncMs: 1_795_687_200_999n };
  const promoted = {
    ...forced,
    stamp: "south-1",
    secondary: "north-1",
    seeded: false,
    step: "demoting",
    epoch: 5n,
    trouble: "stamp north-1: away",
  };
  [begun, states] = [forced, [forced, promoted]];
  const ran = await stamp("geo", "failover", "acme", "--forced", "--accept-loss");
  assert.equal(ran.error, undefined);
  const kept =
    "acme: Last Sync Time 2026-11-26T10:00:00.999Z: acknowledged writes that were begun before it are kept, later ones may be lost";
  assert.ok(ran.out.includes(`${kept}. When north-1 is back, see them: ./stamp geo diverged acme; south-1 takes writes\n`), ran.out);
  [begun, states] = [forced, [{ ...acme, operation: 5n }]];
  assert.match((await stamp("geo", "failover", "acme", "--forced", "--accept-loss")).error?.message ?? "", /was taken back/);
  const { acceptedSyncMs: _, ...unknown } = promoted;
  [begun, states] = [forced, [unknown]];
  const json = await stamp("geo", "failover", "acme", "--forced", "--accept-loss", "--json");
  assert.deepEqual([JSON.parse(json.out).stamp, JSON.parse(json.out).acceptedSync], ["south-1", null]);
  assert.match((await stamp("geo", "status", "acme")).out, /acme: Last Sync Time is not known: what is lost is not known either/);
});

test("geo failover: needs one of --planned and --forced, and refusals are told in their words", async () => {
  const neither = await stamp("geo", "failover", "acme");
  assert.deepEqual([neither.error?.exitCode, asked.length], [exitCodes.usage, 0]);
  assert.match(neither.error?.message ?? "", /either --planned or --forced/);
  const both = await stamp("geo", "failover", "acme", "--planned", "--accept-loss");
  assert.deepEqual([both.error?.exitCode, asked.length], [exitCodes.usage, 0]);
  const forced = await stamp("geo", "failover", "acme", "--forced");
  assert.match(forced.error?.message ?? "", /a forced failover of account acme loses/);
});

test("geo protect, unprotect, give-up and account migrate: ask for what they say and end as the account is", async () => {
  [begun, states] = [
    { ...acme, secondary: "", operation: 5n, kind: "protect", step: "pairing", target: "south-1" },
    [{ ...acme, operation: 5n }],
  ];
  assert.equal((await stamp("geo", "protect", "acme", "--location", "south")).error, undefined);
  assert.deepEqual([asked[0]?.[0], asked[0]?.[1].location, asked[0]?.[1].stamp], ["protect", "south", ""]);
  assert.equal((await stamp("geo", "protect", "acme")).error?.exitCode, exitCodes.usage, "where?");
  states = [{ ...acme, secondary: "", operation: 5n }];
  const notMade = await stamp("geo", "protect", "acme", "--to", "south-1");
  assert.match(notMade.error?.message ?? "", /protection of account acme was taken back/);
  [begun, states] = [{ ...acme, operation: 6n, kind: "unprotect", step: "unpairing" }, [{ ...acme, secondary: "", operation: 6n }]];
  assert.equal((await stamp("geo", "unprotect", "acme")).error, undefined);
  [begun, states] = [{ ...draining, kind: "migrate" }, [{ ...over, secondary: "" }]];
  const moved = await stamp("account", "migrate", "acme", "--to", "south-1");
  assert.deepEqual([moved.error, asked[0]?.[0], asked[0]?.[1].stamp], [undefined, "migrate", "south-1"]);
  assert.match((await stamp("geo", "give-up", "acme")).out, /acme +north-1/);
  assert.equal(asked[0]?.[0], "giveUp");
});

test("geo status: shows accounts with a second stamp, and for tools null where no stamp tells a number", async () => {
  const listed = JSON.parse((await stamp("geo", "status", "--json")).out) as {
    name: string;
    lagSeconds: unknown;
    seedingPercent: unknown;
  }[];
  assert.deepEqual(
    listed.map(({ name, lagSeconds, seedingPercent }) => [name, lagSeconds, seedingPercent]),
    [["acme", null, 100]],
  );
  states = [draining];
  assert.match((await stamp("geo", "status", "acme")).out, /ACCOUNT +PRIMARY +COPY +STATE +COMPLETE +LAG +PENDING +QUEUES +STEP\nacme/);
});

test("geo status: shows lag and backlog of a copy, progress and time left of one that is seeded, and why a range does not go on", async () => {
  const shipping = { epoch: 4n, complete: true, pendingCommits: 12n, pendingBytes: 40_960n, lastSyncMs: 7_000n, nowMs: 12_400n };
  states = [{ ...acme, shipping }];
  const live = await stamp("geo", "status", "acme");
  assert.match(live.out, /acme +north-1 +south-1 +protected +yes +5 s +12 commits, 40 KiB +-/);

  // After hours without a link: how much, how fast, and how long.
  states = [{ ...acme, shipping: { ...shipping, pendingCommits: 73_000n, caughtUpCommitsPerSecond: 100, caughtUpBytesPerSecond: 8_192 } }];
  assert.match((await stamp("geo", "status", "acme")).out, /73000 commits, 40 KiB, 8\.0 KiB\/s less, 730 s left +-/);
  const behind = JSON.parse((await stamp("geo", "status", "acme", "--json")).out);
  const { caughtUpOperationsPerSecond, caughtUpBytesPerSecond, pendingSecondsLeft } = Array.isArray(behind) ? behind[0] : behind;
  assert.deepEqual([caughtUpOperationsPerSecond, caughtUpBytesPerSecond, pendingSecondsLeft], [100, 8_192, 730]);

  // Clients write as fast as the copy ships.
  const rates = { writtenCommits: 400, writtenBytes: 409_600, shippedCommits: 390.4, shippedBytes: 399_360 };
  states = [{ ...acme, shipping: { ...shipping, pendingCommits: 73_000n, rates } }];
  assert.match((await stamp("geo", "status", "acme")).out, /73000 commits, 40 KiB, ships 390\/s, 390 KiB\/s +-/);
  const [busy] = [JSON.parse((await stamp("geo", "status", "acme", "--json")).out)].flat();
  assert.deepEqual([busy.writtenOperationsPerSecond, busy.shippedOperationsPerSecond], [400, 390.4]);

  const range = { rangeId: "12", table: "Entity", state: "seeding", failure: "no connection to h:1" };
  const seeding = { epoch: 4n, seededBytes: 1_048_576n, seedBytes: 4_194_304n, seedBytesPerSecond: 524_288n, nowMs: 12_400n };
  states = [
    { ...acme, seeded: false, state: "seeding", shipping: { ...seeding, trouble: "range 12: no connection to h:1", ranges: [range] } },
  ];
  const begun = await stamp("geo", "status", "acme");
  assert.match(begun.out, /seeding +no +25% seeded, 512 KiB\/s, 6 s left +not known/);
  assert.match(begun.out, /\nacme: range 12: no connection to h:1/);
  const json = JSON.parse((await stamp("geo", "status", "acme", "--json")).out);
  const told = Array.isArray(json) ? json[0] : json;
  assert.deepEqual([told.lagSeconds, told.pendingOperations, told.seedingPercent, told.seedingSecondsLeft], [null, null, 25, 6]);
  assert.deepEqual([told.ranges[0].rangeId, told.ranges[0].oldestUnsent, told.ranges[0].failure], ["12", null, "no connection to h:1"]);
});

test("geo diverged: asks both stamps page by page, shows what was written or deleted, and gives entities as the Table service does", async () => {
  const entity = { key: { partitionKey: "p", rowKey: "1" }, timestamp: 17_956_872_000_000_000n };
  const count = { name: "count", value: { kind: { case: "int64", value: 7n } } };
  const written = { operation: 5n, sequence: 9n, kind: "entity", name: "pairs", entity: { ...entity, properties: [count] } };
  const gone = {
    operation: 5n,
    sequence: 10n,
    kind: "entity",
    name: "pairs",
    deleted: true,
    entity: { key: { partitionKey: "p", rowKey: "2" } },
  };
  states = [over];
  diverged = ({ stamp: at, marker }) => {
    if (at === "south-1") return ok({ complete: true });
    return marker === "" ? ok({ rows: [written], nextMarker: "Entity/05", complete: true }) : ok({ rows: [gone], complete: true });
  };
  const shown = await stamp("geo", "diverged", "acme");
  assert.equal(shown.error, undefined);
  assert.match(shown.out, /north-1 +5 +entity written +pairs +p +1 +2026-11-26T10:00:00\.000Z\nnorth-1 +5 +entity deleted +pairs +p +2 +-/);
  assert.deepEqual(
    asked.map(([, { stamp: at, marker }]) => [at, marker]),
    [
      ["south-1", ""],
      ["north-1", ""],
      ["north-1", "Entity/05"],
    ],
  );
  const [, report] = JSON.parse((await stamp("geo", "diverged", "acme", "--json")).out);
  assert.deepEqual([report.stamp, report.complete, report.rows.length, report.rows[1].entity], ["north-1", true, 2, null]);
  const { PartitionKey, RowKey, count: told, "count@odata.type": type } = report.rows[0].entity;
  assert.deepEqual([PartitionKey, RowKey, told, type], ["p", "1", "7", "Edm.Int64"]);

  const head = { operation: 5n, kind: "blob", name: "photos", blob: "a/1", modifiedMs: 1_795_687_200_000n };
  const part = { ...head, kind: "blob-part", modifiedMs: undefined };
  const blocks = { ...part, blob: "a/2" };
  const rows = [{ operation: 5n, kind: "container", name: "photos", deleted: true }, head, part, blocks, blocks];
  diverged = ({ stamp: at }) => ok({ complete: true, rows: at === "north-1" ? rows : [] });
  const blobs = await stamp("geo", "diverged", "acme");
  assert.match(
    blobs.out,
    /container deleted +photos +- +- +-\n.*blob written +photos +a\/1 +- +2026-11-26T10:00:00\.000Z\n.*blob-part written +photos +a\/2 +- +-$/,
  );
  const [, inJson] = JSON.parse((await stamp("geo", "diverged", "acme", "--json")).out);
  assert.deepEqual(
    inJson.rows.map(({ kind, container, blob }: Record<string, string>) => [kind, container, blob]),
    rows.map(({ kind, name, ...row }) => [kind, name, "blob" in row ? row.blob : null]),
  );

  diverged = () => ok({ complete: false, trouble: "range 12: no connection to h:1" });
  const waiting = await stamp("geo", "diverged", "acme", "--stamp", "north-1");
  assert.match(waiting.out, /^north-1: the report is not complete: range 12: no connection to h:1$/);
  diverged = () => ok({ complete: true });
  assert.match((await stamp("geo", "diverged", "acme")).out, /no stamp has reported anything/);
});

test("location rebalance: plan shows moves and what stays, run makes them one after another", async () => {
  const moves = [
    { account: "acme", from: "north-1", to: "south-1", bytes: 3_221_225_472n },
    { account: "beta", from: "north-1", to: "south-1", bytes: 1_024n },
  ];
  const staying = ["gamma: it has a copy at stamp west-1: fail over to it, or give it up first"];
  proposed = [{ moves, staying }];
  const shown = await stamp("location", "rebalance", "plan");
  assert.match(shown.out, /ACCOUNT +FROM +TO +ON DISKS\nacme +north-1 +south-1 +3\.0 GiB\nbeta .*1\.0 KiB\nstays: gamma: it has a copy/);
  const json = JSON.parse((await stamp("location", "rebalance", "plan", "--json")).out);
  assert.deepEqual([json.moves[0], json.staying], [{ ...moves[0], bytes: 3_221_225_472 }, staying]);

  proposed = [
    { moves, staying },
    { moves: [], staying },
  ];
  [begun, states] = [{ ...draining, kind: "migrate" }, [{ ...over, secondary: "" }]];
  const ran = await stamp("location", "rebalance", "run");
  assert.equal(ran.error, undefined);
  assert.deepEqual(
    asked.map(([name, { account, stamp: to }]) => [name, account, to]),
    [
      ["migrate", "acme", "south-1"],
      ["migrate", "beta", "south-1"],
    ],
  );
  assert.match(ran.out, /^moved: acme to south-1, beta to south-1\nno account is to be moved\nstays: gamma/);
  proposed = [{ moves: [], staying: [] }];
  assert.match((await stamp("location", "rebalance", "run")).out, /^nothing was to be moved\nno account is to be moved$/);
});

test("geo diverged: a stamp that is away hides no other one's report", async () => {
  states = [over];
  const row = { operation: 5n, kind: "container", name: "photos", deleted: true };
  diverged = ({ stamp: at }) =>
    at === "north-1" ? ok({ complete: true, rows: [row] }) : refused("unavailable", "connectFailed", "no connection");
  const shown = await stamp("geo", "diverged", "acme");
  assert.equal(shown.error, undefined);
  assert.match(shown.out, /north-1 +5 +container deleted +photos/);
  assert.match(shown.out, /\nsouth-1: the report is not complete: it does not tell its report: no connection/);
  const one = await stamp("geo", "diverged", "acme", "--stamp", "south-1");
  assert.match(one.error?.message ?? "", /no connection/);
});

test("geo diverged --forget: deletes the report of a named stamp page by page, and nothing without a name", async () => {
  states = [over];
  const unnamed = await stamp("geo", "diverged", "acme", "--forget");
  assert.match(unnamed.error?.message ?? "", /--forget needs --stamp/);
  assert.equal(asked.length, 0);
  const gone = await stamp("geo", "diverged", "acme", "--forget", "--stamp", "north-1");
  assert.equal(gone.error, undefined);
  assert.match(gone.out, /^north-1: 503 rows of the report about account acme are deleted$/);
  assert.deepEqual(
    asked.map(([what, { stamp: at, marker }]) => [what, at, marker]),
    [
      ["forget", "north-1", ""],
      ["forget", "north-1", "Entity/05"],
    ],
  );
  const json = JSON.parse((await stamp("geo", "diverged", "acme", "--forget", "--stamp", "north-1", "--json")).out);
  assert.deepEqual(json, { account: "acme", stamp: "north-1", forgotten: 503 });
});

test("geo failover --anyway, unprotect and migrate --drop-queues: ask for that, and a stamp that still deletes is shown", async () => {
  [begun, states] = [draining, [over]];
  assert.equal((await stamp("geo", "failover", "acme", "--planned", "--anyway")).error, undefined);
  assert.equal(asked[0]?.[1].anyway, true);
  const forced = await stamp("geo", "failover", "acme", "--forced", "--accept-loss", "--anyway");
  assert.deepEqual([forced.error?.exitCode, asked.length], [exitCodes.usage, 0]);
  for (const anyway of [true, false]) {
    [begun, states] = [draining, [over]];
    assert.equal((await stamp("geo", "failback", "acme", "--to", "south-1", ...(anyway ? ["--anyway"] : []))).error, undefined);
    assert.equal(asked[0]?.[1].anyway, anyway);
  }
  const removals = [{ account: "acme", stamp: "south-1", rows: 1_200n, bytesLeft: 40_960n, rangesLeft: 2 }];
  const alone = { ...acme, secondary: "", operation: 6n, removals };
  [begun, states] = [{ ...acme, operation: 6n, kind: "unprotect", step: "unpairing" }, [alone]];
  const ran = await stamp("geo", "unprotect", "acme", "--drop-queues");
  assert.deepEqual([ran.error, asked[0]?.[1].dropQueues], [undefined, true]);
  assert.match(ran.out, /acme: stamp south-1 deletes what it had of it: 1200 rows deleted, 40 KiB left in 2 ranges$/);
  const [told] = [JSON.parse((await stamp("geo", "status", "acme", "--json")).out)].flat();
  assert.deepEqual(told.removals, [{ stamp: "south-1", rowsDeleted: 1_200, bytesLeft: 40_960, rangesLeft: 2, trouble: "" }]);
  [begun, states] = [{ ...draining, kind: "migrate" }, [{ ...over, secondary: "" }]];
  assert.equal((await stamp("account", "migrate", "acme", "--to", "south-1", "--drop-queues")).error, undefined);
  assert.deepEqual([asked[0]?.[1].dropQueues, asked[0]?.[1].anyway], [true, false]);
});

test("account create, geo protect and account migrate --with-queues: ask for that, and say so if the location service does not know it", async () => {
  const alone = { ...acme, secondary: "" };
  [begun, states] = [{ ...alone, kind: "protect", step: "following", target: "south-1", queues: true }, [{ ...acme, queues: true }]];
  const kept = await stamp("geo", "protect", "acme", "--to", "south-1", "--with-queues");
  assert.deepEqual([kept.error, asked[0]?.[1].withQueues], [undefined, true]);
  assert.match(kept.out, /acme +north-1 +south-1 .* copied +-$/);
  const [told] = [JSON.parse((await stamp("geo", "status", "acme", "--json")).out)].flat();
  assert.equal(told.queues, true);
  [begun, states] = [{ ...alone, kind: "protect", step: "following", target: "south-1" }, [acme]];
  assert.match(
    (await stamp("geo", "protect", "acme", "--to", "south-1", "--with-queues")).error?.message ?? "",
    /has begun, and queues are not copied: the location service runs a release that copies no queues.* To take it back: .*geo give-up acme/,
  );
  [begun, states] = [{ ...draining, kind: "migrate", queues: true }, [{ ...over, secondary: "" }]];
  assert.equal((await stamp("account", "migrate", "acme", "--to", "south-1", "--with-queues")).error, undefined);
  assert.deepEqual([asked[0]?.[1].withQueues, asked[0]?.[1].dropQueues], [true, false]);
  const both = await stamp("account", "migrate", "acme", "--to", "south-1", "--with-queues", "--drop-queues");
  assert.deepEqual([both.error?.exitCode, asked.length], [exitCodes.usage, 0]);
});

test("account migrate --anyway: asks for that, and watches a migration that goes on under another number after its drain took too long", async () => {
  const moving = { ...draining, kind: "migrate", secondary: "" };
  [begun, states] = [moving, [moving, { ...moving, step: "seeding", operation: 6n }, { ...over, secondary: "", operation: 6n, epoch: 6n }]];
  const moved = await stamp("account", "migrate", "acme", "--to", "south-1", "--anyway");
  assert.deepEqual([moved.error, asked[0]?.[1].anyway], [undefined, true]);
  assert.match(moved.out, /acme +south-1 +- /);
  [begun, states] = [
    moving,
    [
      { ...moving, step: "unpairing", operation: 6n, givenUp: true },
      { ...acme, secondary: "", operation: 6n },
    ],
  ];
  assert.match(
    (await stamp("account", "migrate", "acme", "--to", "south-1")).error?.message ?? "",
    /migration of account acme was taken back/,
  );
});

test("location lost: asks with the loss accepted only, and says how many accounts the stamp was not told about", async () => {
  const ran = await stamp("location", "lost", "north-1", "--accept-loss");
  assert.deepEqual([ran.error, asked[0]?.[1].name, asked[0]?.[1].acceptLoss], [undefined, "north-1", true]);
  assert.match(ran.out, /north-1 +north +lost .*\nnorth-1 was declared lost: when it answers, it is told of 3 accounts first$/s);
  const json = JSON.parse((await stamp("location", "lost", "north-1", "--accept-loss", "--json")).out);
  assert.deepEqual([json.state, json.lost, json.owed], ["closed", true, 3]);
  assert.match((await stamp("location", "lost", "north-1")).error?.message ?? "", /needs --accept-loss/);
});
