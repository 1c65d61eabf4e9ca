import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiRecord, apiPageText, checkApiPage } from "./api-table.ts";

const requests = [
  { title: "Get Thing", request: "GET", served: true },
  { title: "Get Thing", request: "HEAD", served: true },
  { title: "Burn Thing", request: "POST comp=burn", served: false },
  { title: "Weigh Thing", request: "GET comp=weight", served: false, refusedWith: 400 },
];
const page = { path: "docs/api/none.md", heading: "Things", about: "About things.", requests };

function record(...seen: [string, string, number][]): ApiRecord {
  const made = new ApiRecord();
  for (const [part, title, status] of seen) {
    made.part = part;
    made.saw(title, status);
  }
  return made;
}

test("api page: one row per operation, with the parts that saw it succeed, or refused", () => {
  const seen = record(
    ["b.ts", "Get Thing", 200],
    ["a.ts", "Get Thing", 304],
    ["c.ts", "Get Thing", 404],
    ["a.ts", "Burn Thing", 501],
    ["a.ts", "Weigh Thing", 501],
    ["b.ts", "Weigh Thing", 400],
  );
  const text = apiPageText(page, seen);
  assert.match(text, /\| Get Thing \| `GET`, `HEAD` \| done \| a.ts, b.ts \|/);
  assert.match(text, /\| Burn Thing \| `POST comp=burn` \| 501 \| a.ts \|/);
  assert.match(text, /3 operations, 1 done, 2 refused/);
  assert.match(text, /\| Weigh Thing \| `GET comp=weight` \| 400 \| b.ts \|/);
});

test("api page: a page without a served operation has one row for all that are refused alike", () => {
  const refused = requests.filter(({ served }) => !served).map((each) => ({ ...each, title: `${each.title} (Things)` }));
  const also = { title: "Melt Thing (Things)", request: "POST comp=melt", served: false };
  const seen = record(["a.ts", "Burn Thing (Things)", 501], ["a.ts", "Melt Thing (Things)", 501], ["b.ts", "Weigh Thing (Things)", 400]);
  const text = apiPageText({ ...page, requests: [...refused, also] }, seen);
  assert.match(text, /\| Things \| 501 \| a.ts \| Burn Thing, Melt Thing \|/);
  assert.match(text, /\| Things \| 400 \| b.ts \| Weigh Thing \|/);
});

test("api page: a test more makes no page stale, one less does", () => {
  const burnt: [string, string, number] = ["z.ts", "Burn Thing", 501];
  const older = apiPageText(page, record(["b.ts", "Get Thing", 200], burnt));
  assert.equal(apiPageText(page, record(["a.ts", "Get Thing", 200], ["b.ts", "Get Thing", 200], burnt), older), older);
  assert.notEqual(apiPageText(page, record(["a.ts", "Get Thing", 200], burnt), older), older);
});

test("api page: an operation that no test shows, and a page that says something else, are failures", () => {
  const weighed: [string, string, number] = ["a.ts", "Weigh Thing", 400];
  assert.throws(() => checkApiPage(page, record(["a.ts", "Get Thing", 200], ["a.ts", "Burn Thing", 400], weighed)), /no test shows/);
  assert.throws(
    () => checkApiPage(page, record(["a.ts", "Get Thing", 200], ["a.ts", "Burn Thing", 501], weighed)),
    /is not what the suite shows/,
  );
});
