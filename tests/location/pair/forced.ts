/**
 * The stamp of an account's primary is lost whole under load: a forced failover, what it lost, and the old stamp's way back. Real processes,
 * clients of the SDKs, and the commands that a person types.
 *
 * The link to the copy is silent when the primary dies, so that there is a loss. It has to be exactly what the old stamp reports when it is back,
 * and nothing of it may be from before the Last Sync Time that the failover told.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { blobContent, doorsOf, present, untilAcked, type Write, Writers } from "../testing/judged-writes.ts";
import { isComplete, killStamp, onLocation, silenceDoors, type TwoStamps, until, untilCopy, waitMs } from "../testing/two-stamps.ts";

const account = "lost";
/** Acknowledged writes of each kind that are enough to judge. */
const enough = 40;

interface Diverged {
  readonly kind: string;
  readonly deleted: boolean;
  readonly writtenAt: string | null;
  readonly partitionKey?: string;
  readonly rowKey?: string;
  readonly blob?: string | null;
}

interface Report {
  readonly stamp: string;
  readonly complete: boolean;
  readonly trouble: string;
  readonly rows: readonly Diverged[];
}

/** Waits for the complete report, and returns it as the command tells it. */
async function reportOf(two: TwoStamps, stamp: string): Promise<Report> {
  const page = { account, stamp, marker: "" };
  const ask = () => onLocation(two, (location) => location.listDiverged(page, { timeoutMs: 20_000 }));
  await until(`a complete report of ${stamp}`, ask, (now) => now.ok && now.value.complete);
  const reports = JSON.parse(await two.ok("geo", "diverged", account, "--json")) as Report[];
  const found = reports.find((each) => each.stamp === stamp);
  assert.ok(found?.complete === true, `the command tells no complete report of ${stamp}`);
  return found;
}

/** Names of the objects that a report is about, as `present` names them. */
function namesOf({ rows }: Report): Set<string> {
  const named = rows.flatMap(({ kind, partitionKey, rowKey, blob }) => {
    if (kind === "entity") return [`${partitionKey}/${rowKey}`];
    return kind === "blob" && typeof blob === "string" ? [blob] : [];
  });
  return new Set(named);
}

/** Reads one of the blobs back that the report names, at the stamp that made it; elsewhere the command says where to run it. */
async function readBack({ data, stamp, ok }: TwoStamps, { rows }: Report, as: string): Promise<void> {
  const name = rows.findLast(({ kind, deleted }) => kind === "blob" && !deleted)?.blob ?? "";
  assert.notEqual(name, "", "the report names no blob");
  const [file, get] = [join(data, as), ["geo", "diverged", account, "--get", `kept/${name}`]] as const;
  const elsewhere = await stamp(...get, "--out", file, "--data", join(data, "south-1"));
  assert.equal(elsewhere.code, 1);
  assert.match(elsewhere.output, /this stamp has no report about account lost. Run the command on a host of the stamp that was deposed/);
  await ok(...get, "--out", file, "--data", join(data, "north-1"));
  assert.ok(readFileSync(file).equals(blobContent(name)), `${name}: other bytes than were acknowledged`);
}

/** Judges a forced failover: what the new primary lacks of what the old one acknowledged. Returns that. */
function judgeLoss(acked: readonly Write[], there: ReadonlySet<string>, lastSyncMs: number): readonly Write[] {
  const lost = acked.filter(({ name }) => !there.has(name));
  // Acknowledged before means begun before. The time of an entity is taken while it is written, behind its begin.
  const broken = lost.filter(({ ackedMs, writtenMs }) => ackedMs <= lastSyncMs || (writtenMs !== undefined && writtenMs <= lastSyncMs));
  assert.deepEqual(broken.slice(0, 3), [], `lost, though from before Last Sync Time ${new Date(lastSyncMs).toISOString()}`);
  return lost;
}

export async function primaryIsLost(t: TestContext, two: TwoStamps): Promise<void> {
  const { data, portBase, ok, stamp } = two;
  const { keys } = JSON.parse(await ok("account", "create", account, "--location", "north", "--geo", "south", "--json"));
  const north = doorsOf(portBase, account, keys[0], 1);
  const patient = doorsOf(portBase, account, keys[0], 40);
  const south = doorsOf(portBase + 300, account, keys[0], 1);
  await patient.table.createTable();
  await patient.container.create();
  await untilCopy(two, account, "a complete copy", isComplete);

  const before = new Writers(t, north, "first");
  const beganMs = Date.now();
  await untilAcked(before, enough);
  // There is a part that is kept: the primary has told a time within it.
  await untilCopy(two, account, "a Last Sync Time behind the begin", ({ lastSyncMs = 0 }) => lastSyncMs > beganMs + 1_000);
  const goOn = await silenceDoors(two, "south-1");
  await untilAcked(before, enough);
  const killedMs = Date.now();
  await killStamp(two, "north-1");
  goOn();
  await before.stop();
  const begunMs = Date.now();
  // A client that has gone over to the other stamp already.
  const after = new Writers(t, south, "second");
  const told = JSON.parse(await ok("geo", "failover", account, "--forced", "--accept-loss", "--to", "south-1", "--json"));
  const commandMs = Date.now() - begunMs;
  assert.deepEqual([told.stamp, told.secondary, told.kind, told.step], ["south-1", "north-1", "forced", "demoting"]);
  assert.ok(typeof told.acceptedSync === "string", "the failover says which Last Sync Time it began with");
  const lastSyncMs = Date.parse(told.acceptedSync);
  assert.ok(lastSyncMs < killedMs);
  await untilAcked(after, enough);
  await after.stop();
  const [first] = after.acked;
  assert.ok(first, `no write was accepted at the new primary: ${JSON.stringify(after.failed.slice(-3))}`);
  assert.deepEqual([...new Set(after.failed.map(({ code }) => code))], ["503"], "what clients of a copy see");

  const there = await present(south);
  const lost = judgeLoss(before.acked, there, lastSyncMs);
  assert.ok(lost.length > 0, "nothing was lost: nothing is judged");
  const kept = before.acked.filter(({ ackedMs }) => ackedMs <= lastSyncMs);
  t.diagnostic(
    [
      `acknowledged before: ${before.acked.length}, ${kept.length} of them before Last Sync Time, which is ${killedMs - lastSyncMs} ms before the kill`,
      `lost: ${lost.length}`,
      `the failover's command took ${commandMs} ms, the first write was accepted ${first.ackedMs - begunMs} ms after its begin, ${first.ackedMs - killedMs} ms after the kill`,
    ].join("; "),
  );
  const waiting = JSON.parse((await stamp("geo", "diverged", account, "--stamp", "north-1", "--json")).out || "[]");
  assert.deepEqual(waiting, [], "the lost stamp tells nothing");

  // The old primary comes back. It still believes that it is primary, until the location service has told it.
  const back = new Writers(t, doorsOf(portBase, account, keys[0], 1), "late");
  await ok("up", "-d", "--data", join(data, "north-1"), "--ready-timeout-s", "300");
  const report = await reportOf(two, "north-1");
  await untilCopy(two, account, "a complete copy at the old primary", ({ stamp: primary, secondary, seeded }) => {
    return primary === "south-1" && secondary === "north-1" && seeded;
  });
  const fencedMs = Date.now();
  await waitMs(1_000);
  await back.stop();
  assert.deepEqual(
    back.acked.filter(({ ackedMs }) => ackedMs >= fencedMs),
    [],
    "the deposed stamp acknowledges nothing",
  );
  await assert.rejects(north.table.createEntity({ partitionKey: "foo", rowKey: "fenced" }), { statusCode: 503 });
  const listed = namesOf(report);
  const lostNames = [...lost, ...back.acked].map(({ name }) => name);
  const unlisted = lostNames.filter((name) => !listed.has(name));
  assert.deepEqual(unlisted.slice(0, 3), [], `${unlisted.length} of ${lostNames.length} lost writes are not listed`);
  const now = await present(south);
  assert.deepEqual([...listed].filter((name) => now.has(name)).slice(0, 3), [], "listed as lost, and there");
  for (const { writtenAt, kind } of report.rows)
    if (kind === "entity") assert.ok(writtenAt !== null && Date.parse(writtenAt) > lastSyncMs, `${writtenAt} is before Last Sync Time`);
  await readBack(two, report, "before-failback");
  t.diagnostic(`listed: ${listed.size}; acknowledged by the old primary until it heard of its end: ${back.acked.length}`);

  // The way back is planned: clients write at the new primary meanwhile.
  const during = new Writers(t, south, "third");
  await untilAcked(during, enough);
  const failback = JSON.parse(await ok("geo", "failback", account, "--to", "north-1", "--json"));
  assert.deepEqual([failback.stamp, failback.secondary], ["north-1", "south-1"]);
  await waitMs(1_000);
  await during.stop();
  const atLast = await present(patient);
  const gone = [...[...now], ...during.acked.map(({ name }) => name)].filter((name) => !atLast.has(name));
  assert.deepEqual(gone.slice(0, 3), [], "lost by the failback");
  assert.deepEqual([...listed].filter((name) => atLast.has(name)).slice(0, 3), [], "came back");
  await patient.table.createEntity({ partitionKey: "foo", rowKey: "at last" });
  const afterwards = await reportOf(two, "north-1");
  assert.deepEqual(namesOf(afterwards), listed, "the report stays");
  await readBack(two, afterwards, "after-failback");
}
