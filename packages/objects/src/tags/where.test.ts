import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { containerOfWhere, holds, parseWhere, tagsOfWhere, type WhereKind } from "./where.ts";

function holdsFor(text: string, tags: Record<string, string>, kind: WhereKind = "condition"): boolean {
  const parsed = parseWhere(text, kind);
  assert.ok(parsed.ok, text);
  return holds(parsed.where, tags);
}

test("where: comparisons are of texts, and a tag that is missing only differs", () => {
  const tags = { a: "5", "with space": "x", quote: "it's" };
  for (const [text, expected] of [
    ["a = '5'", true],
    ["a='10'", false],
    ["a > '10'", true],
    ["a >= '5' AND a <= '5'", true],
    ["a < '5'", false],
    ["a <> '5'", false],
    ["a <> '6'", true],
    ["b = ''", false],
    ["b <> 'x'", true],
    ["b < 'x'", false],
    [`"with space" = 'x'`, true],
    [`"a"='5'and"with space"='x'`, true],
    ["quote = 'it''s'", true],
    ["a = '1' OR a = '2' OR a = '5'", true],
    ["a = '5' OR b = '1' AND b = '2'", true],
    ["b = '1' AND b = '2' OR a = '5'", true],
    ["b = '1' AND a = '5'", false],
    ["  a\t=\n'5'  ", true],
  ] as const) {
    assert.equal(holdsFor(text, tags), expected, text);
  }
});

test("where: what can't be read is refused, and what is for searches or conditions only", () => {
  for (const text of [
    "",
    " ",
    "a",
    "a =",
    "a = b",
    "= 'x'",
    "a = 'x",
    "a == 'x'",
    "a = 'x' AND",
    "AND a = 'x'",
    "(a = 'x')",
    "a = 'x' b = 'y'",
  ]) {
    assert.equal(parseWhere(text, "condition").ok, false, text);
    assert.equal(parseWhere(text, "search").ok, false, text);
  }
  for (const text of ["a = 'x' OR b = 'y'", "a <> 'x'", "@container > 'x'", "@container = 'x' AND @container = 'y'", "@other = 'x'"]) {
    assert.equal(parseWhere(text, "search").ok, false, text);
  }
  assert.equal(parseWhere("@container = 'x'", "condition").ok, false);
  const many = (comparisons: number): string => Array.from({ length: comparisons }, (_, i) => `k${i} = 'v'`).join(" AND ");
  assert.equal(parseWhere(many(10), "containerSearch").ok, true);
  assert.equal(parseWhere(`${many(5)} AND @container = 'x' AND ${many(10).slice(many(5).length + 5)}`, "search").ok, true);
  assert.equal(parseWhere(`@container = 'x' AND ${many(11)}`, "search").ok, false);
  assert.equal(parseWhere(many(11), "condition").ok, false);
  const ranges = Array.from({ length: 10 }, (_, i) => `k${i} >= 'a' AND k${i} < 'b'`).join(" AND ");
  for (const kind of ["search", "containerSearch", "condition"] as const) assert.equal(parseWhere(ranges, kind).ok, true, kind);
  assert.equal(parseWhere(Array.from({ length: 99 }, (_, i) => `k = '${i}'`).join(" OR "), "condition").ok, true);
  assert.equal(parseWhere(`a = '${"x".repeat(9000)}'`, "search").ok, false);
});

test("where: a search is refused with the place of what does not fit, a condition may speak of tags that can't be", () => {
  const at = (position: number, what: string): string =>
    `Error parsing query at or near character position ${position}: unexpected ${what}`;
  const long = "k".repeat(129);
  for (const [text, reason] of [
    ["a = b", at(5, "'b'")],
    ["  a = 5", at(7, "'5'")],
    ["a = 'x' AND\tb-c = 'y'", at(14, "'-'")],
    ["a = 'x' OR b = 'y'", at(9, "'OR'")],
    ["a <> 'x'", at(3, "'<>'")],
    ["(a = 'x')", at(1, "'('")],
    ["a = 'x", at(5, "'''")],
    ["a = ", at(4, "end")],
    ["", at(1, "end")],
    ["Month = '4'", at(1, "'Month'")],
    ["a > '' AND year = '2021'", at(12, "'year'")],
    [`"Month" = '4' AND "Year" = '2021' AND Months = '2'`, ""],
    [`"a,b" = 'x'`, at(1, "'a,b'")],
    [`"" = 'x'`, at(1, "''")],
    [`"${long}" = 'x'`, at(1, `'${long}'`)],
    [`"${long.slice(1)}" = 'x'`, ""],
    ["a = 'it''s'", at(5, "'it's'")],
    ["a > 'é'", at(5, "'é'")],
    [`a = '${"v".repeat(256)}'`, ""],
    [`a = '${"v".repeat(257)}'`, at(5, `'${"v".repeat(257)}'`)],
    ["@other = 'x'", at(1, "'@other'")],
    ["@container > 'x'", at(12, "'>'")],
    ["@container = 'Not A Container'", ""],
  ] as const) {
    const parsed = parseWhere(text, "search");
    assert.equal(parsed.ok ? "" : parsed.reason, reason, text);
  }
  const inOne = parseWhere("a = 'x' AND @container = 'box'", "containerSearch");
  assert.equal(!inOne.ok && inOne.reason, "Error parsing query: Cannot have container in both uri and query");
  for (const text of [`"a,b" <> 'x'`, "a = 'it''s'", "Year = '2021'"]) assert.equal(parseWhere(text, "condition").ok, true, text);
});

test("where: a search names its container and the tags it speaks of", () => {
  const parsed = parseWhere("@container = 'box' AND a >= '1' AND a < '3' AND b = 'x'", "search");
  assert.ok(parsed.ok);
  assert.equal(containerOfWhere(parsed.where), "box");
  assert.deepEqual({ ...tagsOfWhere(parsed.where, { a: "2", b: "x", c: "y" }) }, { a: "2", b: "x" });
  assert.equal(holds(parsed.where, { a: "2", b: "x" }), true);
});

test("where: a tag may be compared more than once on one side, and each comparison counts", () => {
  const found = (text: string, value: string): boolean => {
    const parsed = parseWhere(text, "search");
    assert.ok(parsed.ok, text);
    return holds(parsed.where, { a: value });
  };
  assert.deepEqual(
    ["1", "2", "3"].map((value) => found("a > '1' AND a > '2'", value)),
    [false, false, true],
  );
  assert.deepEqual(
    ["1", "2", "3"].map((value) => found("a <= '1' AND a < '3' AND a >= '1'", value)),
    [true, false, false],
  );
  assert.deepEqual(
    ["x", "y"].map((value) => found("a = 'x' AND a = 'y'", value)),
    [false, false],
  );
});

test("where: any text is answered, and soon; names of object maps are no tags", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(fc.constantFrom("a", "'x'", '"', "'", "=", "<>", ">", "AND", "OR", " ", "@")).map((parts) => parts.join("")),
      ),
      (text) => {
        for (const kind of ["search", "containerSearch", "condition"] as const) {
          const parsed = parseWhere(text, kind);
          if (parsed.ok) holds(parsed.where, { a: "x" });
        }
      },
    ),
    { numRuns: 2000 },
  );
  assert.equal(holdsFor("constructor <> 'x'", {}), true);
  assert.equal(holdsFor("__proto__ = 'x'", {}), false);
});
