/** State of the copy that made a blob or makes it, in the blob's head row. Format: docs/formats/row.md. */
import type { BlobReference } from "../../object-keys.ts";
import type { CopyState, CopyWork } from "../../operation.ts";
import type { DictionaryEntry } from "../../rows/row.ts";

type Texts = Readonly<Record<string, string | number | undefined>>;

/** Texts, and numbers as int64; what is undefined is left out. */
function entriesOf(values: Texts): DictionaryEntry[] {
  const entries: DictionaryEntry[] = [];
  for (const [name, value] of Object.entries(values)) {
    if (typeof value === "string") entries.push({ name, type: "string", value });
    else if (value !== undefined) entries.push({ name, type: "int64", value: BigInt(value) });
  }
  return entries;
}

export function encodeCopy(copy: CopyState | undefined): DictionaryEntry[] | undefined {
  if (!copy) return undefined;
  const { copyId, source, status, description, copiedBytes, totalBytes, completedMs, work } = copy;
  const shown = { copyId, source, status, description, copiedBytes, totalBytes, completedMs };
  return entriesOf(work ? { ...shown, ...workEntries(work) } : shown);
}

const workEntries = ({ copier, beatMs, next, from, fromEtag, fromUrl }: CopyWork): Texts => ({
  copier,
  beatMs,
  next,
  fromEtag,
  ...(fromUrl === "" ? {} : { fromUrl }),
  fromAccount: from?.account,
  fromContainer: from?.container,
  fromIncarnation: from?.containerIncarnation,
  fromBlob: from?.blob,
  fromSnapshot: from?.snapshotStamp,
  fromVersion: from?.versionStamp,
});

export function decodeCopy(entries: readonly DictionaryEntry[] | undefined): CopyState | undefined {
  if (!entries) return undefined;
  const values = new Map(entries.map((entry) => [entry.name, entry.value]));
  const text = (name: string): string => String(values.get(name) ?? "");
  const number = (name: string): number => Number(values.get(name) ?? 0);
  const from: BlobReference = {
    account: text("fromAccount"),
    container: text("fromContainer"),
    containerIncarnation: number("fromIncarnation"),
    blob: text("fromBlob"),
    snapshotStamp: number("fromSnapshot"),
    versionStamp: number("fromVersion"),
  };
  const fromUrl = text("fromUrl");
  const source = fromUrl === "" ? { from, fromUrl } : { fromUrl };
  const work: CopyWork = { copier: text("copier"), beatMs: number("beatMs"), next: number("next"), fromEtag: text("fromEtag"), ...source };
  return {
    copyId: text("copyId"),
    source: text("source"),
    status: text("status"),
    description: text("description"),
    copiedBytes: number("copiedBytes"),
    totalBytes: number("totalBytes"),
    completedMs: values.has("completedMs") ? number("completedMs") : undefined,
    work: values.has("copier") ? work : undefined,
  };
}
