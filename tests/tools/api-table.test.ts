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

test("api page: one row per operation, done or with the status of its refusal", () => {
  const text = apiPageText(page);
  assert.match(text, /\| Get Thing \| `GET`, `HEAD` \| done \|/);
  assert.match(text, /\| Burn Thing \| `POST comp=burn` \| 501 \|/);
  assert.match(text, /3 operations, 1 done, 2 refused/);
  assert.match(text, /\| Weigh Thing \| `GET comp=weight` \| 400 \|/);
});

test("api page: a page without a served operation has one row for all that are refused alike", () => {
  const refused = requests.filter(({ served }) => !served).map((each) => ({ ...each, title: `${each.title} (Things)` }));
  const also = { title: "Melt Thing (Things)", request: "POST comp=melt", served: false };
  const text = apiPageText({ ...page, requests: [...refused, also] });
  assert.match(text, /\| Things \| 501 \| Burn Thing, Melt Thing \|/);
  assert.match(text, /\| Things \| 400 \| Weigh Thing \|/);
});

test("api page: an operation that no test shows, and a page that says something else, are failures", () => {
  const weighed: [string, string, number] = ["a.ts", "Weigh Thing", 400];
  assert.throws(() => checkApiPage(page, record(["a.ts", "Get Thing", 200], ["a.ts", "Burn Thing", 400], weighed)), /no test shows/);
  assert.throws(
    () => checkApiPage(page, record(["a.ts", "Get Thing", 200], ["a.ts", "Burn Thing", 501], weighed)),
    /is not what the suite shows/,
  );
});
