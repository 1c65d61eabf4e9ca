/** Reads, at the beginning of a term, the records of erasure coding that belong to no extent: pauses, and ages of extents. */
import { type Outcome, ok } from "@stamp/base";
import type { MetadataClient } from "@stamp/metadata-store";
import { codingAgesKey, codingPauseKey } from "@stamp/stream";
import type { Term } from "../term/term.ts";
import { CodingPauses } from "./pauses.ts";
import { SavedAges } from "./saved-ages.ts";

export interface CodingRecords {
  readonly pauses: CodingPauses;
  readonly savedAges: SavedAges;
}

export async function loadCodingRecords(term: Term, metadata: MetadataClient): Promise<Outcome<CodingRecords>> {
  const read = await metadata.get([codingPauseKey, codingAgesKey], term.config.metadataTimeoutMs);
  if (!read.ok) return read;
  const storedAt = (key: string): Uint8Array | undefined => read.value.find((each) => each.key === key && each.version > 0)?.value;
  return ok({
    pauses: new CodingPauses(term, metadata, storedAt(codingPauseKey)),
    savedAges: new SavedAges(term, metadata, storedAt(codingAgesKey)),
  });
}
