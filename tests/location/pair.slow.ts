/**
 * Two stamps and a location service of real processes, started once for all tests here: a start and a stop take longer than most of them. Each
 * test has an account of its own and leaves both stamps running, so that the next one finds them as after `stamp up --stamps 2`. The order
 * counts: the one that loses a stamp comes behind the others, and the last one deletes everything.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { blobsAreCopied } from "./pair/blobs.ts";
import { commandsWork, resetDeletesAll } from "./pair/commands.ts";
import { primaryIsLost } from "./pair/forced.ts";
import { guideIsRight } from "./pair/guide.ts";
import { queuesAreCopied } from "./pair/queues.ts";
import { settingsAreInForce } from "./pair/settings.ts";
import { tablesAreCopied } from "./pair/tables.ts";
import { everyKindIsCopied } from "./testing/every-kind.ts";
import { type StartedTwoStamps, startTwoStamps, type TwoStamps } from "./testing/two-stamps.ts";

let started: StartedTwoStamps | undefined;
before(async () => {
  started = await startTwoStamps();
});
after(() => started?.end());

function pair(): TwoStamps {
  assert.ok(started, "the stamps were started");
  return started;
}

test("up --stamps 2: two stamps with a connection string each, one location service for both, and everything by one folder", (t) =>
  commandsWork(t, pair()));

test("geo: blobs of every type are at the secondary with bytes, ETags, times, MD5, tags and snapshots, and are served there after a failover", (t) =>
  blobsAreCopied(t, pair()));

test("geo: everything that is copied, of every kind, is told at the secondary as at the primary", async (t) => {
  t.diagnostic(`facts compared: ${await everyKindIsCopied(pair(), "kinds")}`);
});

test("geo: tables written at the primary are at the secondary, in order, with their ETags and times, under cuts of the link", (t) =>
  tablesAreCopied(t, pair()));

test("geo: queues under load fail over with every message, receipts from before still count, and an account moves with its queues", (t) =>
  queuesAreCopied(t, pair()));

test("geo: a rotated key, its SAS, and public access that is off read no copy when the command has ended", (t) =>
  settingsAreInForce(t, pair()));

test("guide of geo: every command works as it stands there", (t) => guideIsRight(t, pair()));

test("geo: the primary stamp is lost whole under load: a forced failover loses what lies behind Last Sync Time, and that is listed", (t) =>
  primaryIsLost(t, pair()));

test("reset: needs --yes, and deletes the stamps, the location service and their record", (t) => resetDeletesAll(t, pair()));
