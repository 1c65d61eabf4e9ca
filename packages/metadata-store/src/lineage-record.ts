/**
 * The lineage of a metadata store: key `lineage`, a framed record of kind `L`, version 1 (docs/formats/metadata.md). A restore takes back what was
 * recorded after its copy, so everything that follows the store compares lineages before it compares positions: ranges (their commit logs may be
 * shorter), and copies of accounts at other stamps (docs/design/geo-shipping.md "Lineage").
 *
 * Invariants:
 *  - Only what takes records back writes the key: `stamp metadata restore`. A move of the store between folder and etcd leaves it.
 *  - A later restore has a higher number: it is the number of the transaction at which the restored store begins (docs/design/processes.md).
 *  - Absent: 0, the store was never restored. The key is outside of `sm/`, so releases before lineages skip it.
 */
import { type Checksum, frameRecord, fromUtf8, type Outcome, ok, refused, unframeRecord, utf8 } from "@stamp/base";
import type { World } from "@stamp/ports";
import type { MetadataClient } from "./metadata-client.ts";

export interface LineageRecord {
  /** Number of the lineage: rises with every restore. */
  readonly number: number;
  /** Time at which it began, in milliseconds since 1970. */
  readonly wallMs: number;
}

export const lineageKey = "lineage";
const letter = 0x4c;
const version = 1;

export function encodeLineage({ number, wallMs }: LineageRecord, checksum: Checksum): Uint8Array {
  return frameRecord(letter, version, utf8(JSON.stringify({ number, wallMs })), checksum);
}

/** Decodes a lineage. Refuses with `damaged` if the bytes are no such record, with `newerFormat` if they are of a later version. */
export function decodeLineage(bytes: Uint8Array, checksum: Checksum): Outcome<LineageRecord> {
  const payload = unframeRecord("metadata", letter, version, bytes, checksum);
  if (!payload.ok) return payload;
  try {
    const { number, wallMs } = JSON.parse(fromUtf8(payload.value)) as Partial<LineageRecord>;
    if (isCount(number) && isCount(wallMs)) return ok({ number, wallMs });
  } catch {
    // Told below.
  }
  return refused("dataLoss", "damaged", `the record ${lineageKey} has no number or no time`);
}

/** Returns the lineage of the store; 0: it was never restored. Refused with `damaged` if its record can't be read. */
export async function storeLineage(
  { digest }: Pick<World, "digest">,
  metadata: Pick<MetadataClient, "get">,
  timeoutMs: number,
): Promise<Outcome<number>> {
  const read = await metadata.get([lineageKey], timeoutMs);
  if (!read.ok) return read;
  const [stored] = read.value;
  if (stored === undefined || stored.version === 0) return ok(0);
  const decoded = decodeLineage(stored.value, (bytes) => digest.crc32c(bytes));
  return decoded.ok ? ok(decoded.value.number) : decoded;
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
