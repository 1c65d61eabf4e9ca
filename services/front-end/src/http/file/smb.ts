/**
 * Properties that SMB gives a file or directory, as entries of its metadata that no client can name (`doorEntriesOf`). Each write sets the
 * entries that it changes in the same commit as its content. Times are texts with 100 ns, as the service shows them.
 */
import {
  allParsed,
  badHeader,
  formatIso,
  notImplemented,
  type Parsed,
  parseBoolean,
  parsed,
  parseSmbProperties,
  type ResponseHeaders,
  rejected,
  type SmbProperties,
  timeNow,
} from "@stamp/azure-rest";
import { doorEntriesOf } from "@stamp/objects";
import type { Blob, Container } from "@stamp/wire";
import type { FileExchange } from "./exchange.ts";
import { defaultPermissionKey, keyOfPermission, knownPermission } from "./permissions.ts";

type Entries = Record<string, string>;

const attributes = ":attributes";
const created = ":created";
const written = ":written";
const changed = ":changed";
const permissionKey = ":permission";

const nowOf = (exchange: Pick<FileExchange, "objects">): string => formatIso(exchange.objects.parts.world.clock.wallMs());

/** Entries that a creation sets: all of them. */
export async function newEntries(exchange: FileExchange, row: Container, isDirectory: boolean): Promise<Parsed<Entries>> {
  const asked = parseSmbProperties(exchange.headers, isDirectory);
  if (!asked.ok) return asked;
  const key = await permissionOf(exchange, row, asked.value);
  if (!key.ok) return key;
  const now = nowOf(exchange);
  const timeOf = (text: string | undefined): string => (text === undefined || text === timeNow ? now : text);
  return parsed({
    [attributes]: asked.value.attributes ?? (isDirectory ? "Directory" : "Archive"),
    [created]: timeOf(asked.value.creationTime),
    [written]: timeOf(asked.value.lastWriteTime),
    [changed]: timeOf(asked.value.changeTime),
    [permissionKey]: key.value ?? defaultPermissionKey,
  });
}

/** Entries that Set File or Directory Properties sets: those that its headers name, and the time of the change. */
export async function changedEntries(exchange: FileExchange, row: Container, isDirectory: boolean): Promise<Parsed<Entries>> {
  const asked = parseSmbProperties(exchange.headers, isDirectory);
  if (!asked.ok) return asked;
  const key = await permissionOf(exchange, row, asked.value);
  if (!key.ok) return key;
  const now = nowOf(exchange);
  const entries: Entries = { [changed]: now };
  const { creationTime, lastWriteTime, changeTime } = asked.value;
  for (const [entry, text] of [
    [created, creationTime],
    [written, lastWriteTime],
    [changed, changeTime],
  ] as const) {
    if (text !== undefined) entries[entry] = text === timeNow ? now : text;
  }
  if (asked.value.attributes !== undefined) entries[attributes] = asked.value.attributes;
  if (key.value !== undefined) entries[permissionKey] = key.value;
  return parsed(entries);
}

/** Entries that a write of content sets. `x-ms-file-last-write-time: preserve` keeps the time of the last write. */
export function contentEntries(exchange: Pick<FileExchange, "objects" | "headers">): Entries {
  const now = nowOf(exchange);
  const keeps = exchange.headers["x-ms-file-last-write-time"]?.toLowerCase() === "preserve";
  return keeps ? { [changed]: now } : { [written]: now, [changed]: now };
}

/** Headers of a copy that may say "source": the copy takes the property over, as it does where the header is absent. */
const ofSource = ["x-ms-file-attributes", "x-ms-file-creation-time", "x-ms-file-last-write-time", "x-ms-file-change-time"] as const;
const setArchive = "x-ms-file-copy-set-archive";
const copyMode = "x-ms-file-permission-copy-mode";

/** Entries of a copy: those of its source, with what the headers name in their place. Keys of permissions are those of one share. */
export async function copyEntries(exchange: FileExchange, row: Container, source: Blob, isSameShare: boolean): Promise<Parsed<Entries>> {
  const says = (name: string, word: string): boolean => exchange.headers[name]?.toLowerCase() === word;
  const taken = ofSource.filter((name) => says(name, "source"));
  const headers = Object.fromEntries(Object.entries(exchange.headers).filter(([name]) => !taken.some((one) => one === name)));
  const asked = allParsed({
    changed: await changedEntries({ ...exchange, headers }, row, false),
    archives: parseBoolean(exchange.headers, setArchive),
  });
  if (!asked.ok) return asked;
  const mode = exchange.headers[copyMode];
  const given = asked.value.changed[permissionKey];
  const { [permissionKey]: sourceKey = defaultPermissionKey, ...copied } = doorEntriesOf(source.metadata);
  if (mode !== undefined && !says(copyMode, "source") && !says(copyMode, "override"))
    return badHeader(copyMode, mode, "source or override.");
  if (says(copyMode, "override") && given === undefined)
    return rejected("MissingRequiredHeader", { HeaderName: "x-ms-file-permission-key" });
  if (says(copyMode, "source")) {
    if (given !== undefined) return badHeader(copyMode, "source", "The request names a permission: say override.");
    if (!isSameShare && sourceKey !== defaultPermissionKey) return notImplemented(`${copyMode}: source, of a file of another share,`);
  }
  const entries: Entries = { [permissionKey]: isSameShare ? sourceKey : defaultPermissionKey, ...copied, ...asked.value.changed };
  if (taken.includes("x-ms-file-change-time")) entries[changed] = copied[changed] ?? entries[changed] ?? "";
  if (!asked.value.archives) return parsed(entries);
  const shown = (entries[attributes] ?? "None").split(" | ").filter((name) => name !== "None");
  const archived = parseSmbProperties({ "x-ms-file-attributes": [...shown, "Archive"].join("|") }, false);
  return archived.ok ? parsed({ ...entries, [attributes]: archived.value.attributes ?? "Archive" }) : archived;
}

/** Entries that a change of metadata sets. */
export const metadataEntries = (exchange: FileExchange): Entries => ({ [changed]: nowOf(exchange) });

async function permissionOf(exchange: FileExchange, row: Container, asked: SmbProperties): Promise<Parsed<string | undefined>> {
  if (asked.permission !== undefined) return keyOfPermission(exchange, row, asked.permission);
  if (asked.permissionKey === undefined || asked.permissionKey === defaultPermissionKey) return parsed(asked.permissionKey);
  const known = await knownPermission(exchange, row, asked.permissionKey);
  return known.ok ? parsed(asked.permissionKey) : known;
}

/** These properties as a file or directory shows them. */
export interface ShownSmb {
  readonly attributes: string;
  readonly created: string;
  readonly written: string;
  readonly changed: string;
  readonly permissionKey: string;
}

export function smbOf({ metadata, createdMs, lastModifiedMs }: Pick<Blob, "metadata" | "createdMs" | "lastModifiedMs">): ShownSmb {
  return {
    attributes: metadata[attributes] ?? "None",
    created: metadata[created] ?? formatIso(Number(createdMs)),
    written: metadata[written] ?? formatIso(Number(lastModifiedMs)),
    changed: metadata[changed] ?? formatIso(Number(lastModifiedMs)),
    permissionKey: metadata[permissionKey] ?? defaultPermissionKey,
  };
}

export const isReadOnly = (blob: Blob): boolean => smbOf(blob).attributes.split(" | ").includes("ReadOnly");

/** File ids of the service are numbers of 64 bits; the root's is 0. */
export const fileIdOf = (id: string | undefined): string => (id === undefined ? "0" : BigInt(`0x${id.slice(0, 16)}`).toString());

export const smbHeaders = (shown: ShownSmb, id: string | undefined, parentId: string | undefined): ResponseHeaders => ({
  "x-ms-file-attributes": shown.attributes,
  "x-ms-file-creation-time": shown.created,
  "x-ms-file-last-write-time": shown.written,
  "x-ms-file-change-time": shown.changed,
  "x-ms-file-permission-key": shown.permissionKey,
  "x-ms-file-id": fileIdOf(id),
  "x-ms-file-parent-id": fileIdOf(parentId),
});
