/** Keys and values of report rows: hidden, beside their PartitionName, in the order of commits; their bytes are frozen. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { compareBytes, toHex, unwrap, utf8 } from "@stamp/base";
import { isMarkerKey, markerKey, seedMarkKey } from "../index.ts";
import type { RowWrite } from "../types.ts";
import { decodeReportRow, encodeReportRow, isReportKey, reportKey } from "./report-row.ts";

const name = utf8("p/");
const place = { operation: 3, sequence: 300, index: 1 };

test("report rows: the bytes of keys and values are frozen, and decode to what was encoded", () => {
  const key = reportKey(name, place);
  assert.equal(toHex(key), "702f" + "02" + "0000000000000003" + "000000000000012c" + "00000001" + "04");
  const writes: readonly (readonly [RowWrite, string])[] = [
    [{ kind: "put", key: utf8("p/7"), value: utf8("abc") }, "0101" + "0137" + "616263"],
    [{ kind: "delete", key: utf8("p/7") }, "0100" + "0137"],
  ];
  for (const [write, bytes] of writes) {
    const encoded = encodeReportRow(name, write);
    assert.equal(toHex(encoded), bytes);
    assert.deepEqual(unwrap(decodeReportRow(key, name, encoded)), { ...place, name, write });
    for (const odd of [
      new Uint8Array(0),
      encoded.subarray(0, 3),
      Uint8Array.of(9, ...encoded),
      Uint8Array.of(1, 7, ...encoded.subarray(2)),
    ]) {
      const decoded = decodeReportRow(key, name, odd);
      assert.ok(!decoded.ok && decoded.failure.reason === "damaged", toHex(odd));
    }
  }
});

test("report rows: their keys are hidden, told from those of markers, and in the order of operations and commits", () => {
  const places = [
    { operation: 3, sequence: 9, index: 2 },
    { operation: 3, sequence: 300, index: 0 },
    { operation: 3, sequence: 300, index: 1 },
    { operation: 4, sequence: 1, index: 0 },
    { operation: 2 ** 40, sequence: 2 ** 50, index: 0 },
  ];
  const keys = places.map((one) => reportKey(name, one));
  assert.deepEqual(keys.map(toHex), keys.map(toHex).sort());
  assert.ok(keys.every((key) => isMarkerKey(key) && isReportKey(key, name)));
  assert.ok(![markerKey(name), seedMarkKey(name), reportKey(utf8("q/"), place)].some((key) => isReportKey(key, name)));
  assert.ok(
    keys.every((key) => compareBytes(key, utf8("p0")) < 0 && compareBytes(key, name) > 0),
    "beside its PartitionName",
  );
});
