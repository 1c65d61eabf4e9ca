import assert from "node:assert/strict";
import { test } from "node:test";
import { bytesText, msText, rateText, spanText } from "./format.ts";
import type { Snapshot, StampEvent } from "./model.ts";
import { connection, events, happened, lost, points, readRoute, route, to, took } from "./store.ts";

const event = (number: number): StampEvent => ({ number, atMs: 0, kind: "good", subject: "", text: `event ${number}` });
const numbers = (): number[] => events.value.map(({ number }) => number);

test("page: events that come twice are shown once; those of a console that was started again replace the others", () => {
  events.value = [];
  happened([event(1), event(2)]);
  happened([event(1), event(2), event(3)]);
  assert.deepEqual(numbers(), [1, 2, 3]);
  happened([event(1)]);
  assert.deepEqual(numbers(), [1]);
});

test("page: events and figures are bounded", () => {
  events.value = [];
  happened(Array.from({ length: 600 }, (_, index) => event(index + 1)));
  assert.equal(numbers().length, 500);
  assert.equal(numbers().at(-1), 600);
  points.value = [];
  for (let atMs = 1; atMs <= 3_601; atMs++) took({ figures: { atMs } } as unknown as Snapshot);
  assert.equal(points.value.length, 3_600);
  assert.equal(connection.value, "live");
  lost();
  assert.equal(connection.value, "lost");
});

test("page: an address leads to the same thing whatever its name has in it", () => {
  for (const name of ["/ps/blob-1/row-data", "a%2Fb", "<img src=x onerror=alert(1)>", "\u202Eabc", "😀".repeat(40), "?#&="]) {
    readRoute(to("streams", name));
    assert.deepEqual(route.value, ["streams", name]);
  }
  readRoute("#/streams/%E0%A4%A");
  assert.deepEqual(route.value, ["streams", "%E0%A4%A"], "no escape that can be read");
  readRoute("");
  assert.deepEqual(route.value, []);
});

test("page: numbers have units, and what is not known is a dash", () => {
  assert.deepEqual([0, 1_023, 1_536, 5 * 1_024 ** 3, null].map(bytesText), ["0 B", "1023 B", "1.5 KiB", "5.0 GiB", "–"]);
  assert.deepEqual([0, 0.25, 1_234.4, null].map(rateText), ["0/s", "0.3/s", "1,234/s", "–"]);
  assert.deepEqual([0, 0.5, 7.25, 70.4, 12_000, null].map(msText), ["0 ms", "0.50 ms", "7.3 ms", "70 ms", "12 s", "–"]);
  assert.deepEqual([-5, 59_000, 3_540_000, 3_660_000, 200_000_000].map(spanText), ["0 s", "59 s", "59 min", "1 h 1 min", "2 days"]);
});
