/** Tests with a stamp of their own: npm install --save-dev ./stamp-storage-VERSION.tgz, then node --test. */
import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { startStamp } from "stamp-storage";
import { Notes } from "./notes.mjs";

let stamp;
before(async () => {
  stamp = await startStamp();
});
beforeEach(() => stamp.reset());
after(() => stamp.stop());

test("a note is kept", async () => {
  const notes = new Notes(stamp.connectionString);
  await notes.add("first", "hello");
  assert.equal(await notes.read("first"), "hello");
});

test("each test begins with nothing", async () => {
  assert.deepEqual(await new Notes(stamp.connectionString).names(), []);
});

test("a note outlives the partition server that took it", async () => {
  const notes = new Notes(stamp.connectionString);
  await notes.add("first", "hello");
  await stamp.kill("partition-server-1");
  await stamp.start("partition-server-1");
  assert.equal(await notes.read("first"), "hello");
});

test("adding a note waits while the storage does not answer", async () => {
  await stamp.pause("partition-server-1");
  const notes = new Notes(stamp.connectionString);
  await Promise.all([notes.add("late", "hello"), stamp.resume("partition-server-1")]);
  assert.deepEqual(await notes.names(), ["late"]);
});

test("two stamps do not meet", async () => {
  await using other = await startStamp();
  await new Notes(other.connectionString).add("elsewhere", "hello");
  assert.deepEqual(await new Notes(stamp.connectionString).names(), []);
});
