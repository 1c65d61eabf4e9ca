/**
 * Rows of the report of a deposed primary: hidden rows, one for each row of a commit that only this stamp had
 * (docs/design/geo-shipping.md "Report of a deposed primary"). A report row's key begins as the keys of the PartitionName, so that no
 * split parts them, and ends as those of markers, so that no scan gives it. Format: docs/formats/shipped-version.md.
 */
import { ByteReader, ByteWriter, DecodeError, type Outcome, ok, refused, startsWith } from "@stamp/base";
import { markerKey } from "../shipping/marker.ts";
import type { RowWrite } from "../types.ts";

/** Byte behind the PartitionName, where rows have the begin of a component. */
const reportByte = 0x02;
const reportVersion = 1;
const kinds = { delete: 0, put: 1 } as const;
/** Operation, sequence and index. */
const numbersBytes = 8 + 8 + 4;

/** Place of a row in the report. */
export interface ReportPlace {
  /** Number of the failover that deposed the primary. */
  readonly operation: number;
  /** Sequence of the commit in the log of its range. */
  readonly sequence: number;
  /** Index of the row among those of its PartitionName in the commit, from 0. */
  readonly index: number;
}

export interface ReportRow extends ReportPlace {
  /** Bytes with which the keys of the PartitionName begin. */
  readonly name: Uint8Array;
  readonly write: RowWrite;
}

/** Returns the key of a report row; keys have the order of operation, sequence and index. */
export function reportKey(name: Uint8Array, { operation, sequence, index }: ReportPlace): Uint8Array {
  const key = new Uint8Array(name.length + 1 + numbersBytes);
  key.set(name);
  key[name.length] = reportByte;
  const view = new DataView(key.buffer, name.length + 1);
  view.setBigUint64(0, BigInt(operation));
  view.setBigUint64(8, BigInt(sequence));
  view.setUint32(16, index);
  return markerKey(key);
}

/** True if the key is that of a report row of this PartitionName. */
export const isReportKey = (key: Uint8Array, name: Uint8Array): boolean =>
  key.length === name.length + 1 + numbersBytes + 1 && key[name.length] === reportByte && startsWith(key, name);

export function encodeReportRow(name: Uint8Array, write: RowWrite): Uint8Array {
  const value = write.kind === "put" ? write.value : new Uint8Array(0);
  const rest = write.key.subarray(name.length);
  const writer = new ByteWriter(16 + rest.length + value.length);
  writer.byte(reportVersion);
  writer.byte(kinds[write.kind]);
  writer.sized(rest);
  writer.bytes(value);
  return writer.written.slice();
}

export function decodeReportRow(key: Uint8Array, name: Uint8Array, bytes: Uint8Array): Outcome<ReportRow> {
  const view = new DataView(key.buffer, key.byteOffset + name.length + 1, numbersBytes);
  const place = { operation: Number(view.getBigUint64(0)), sequence: Number(view.getBigUint64(8)), index: view.getUint32(16) };
  try {
    const reader = new ByteReader(bytes);
    const format = reader.byte();
    if (format !== reportVersion) return refused("dataLoss", "damaged", `a report row of format version ${format}`);
    const kind = reader.byte();
    const rest = reader.sized();
    const row = new Uint8Array(name.length + rest.length);
    row.set(name);
    row.set(rest, name.length);
    const value = reader.bytes(reader.left).slice();
    if (kind === kinds.put) return ok({ ...place, name, write: { kind: "put", key: row, value } });
    if (kind !== kinds.delete || value.length > 0) return refused("dataLoss", "damaged", "a report row of no known kind");
    return ok({ ...place, name, write: { kind: "delete", key: row } });
  } catch (error) {
    if (error instanceof DecodeError) return refused("dataLoss", "damaged", error.message);
    throw error;
  }
}
