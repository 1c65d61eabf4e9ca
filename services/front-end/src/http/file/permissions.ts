/**
 * Permissions of a share (Create Permission, Get Permission): texts that files and directories of the share name by a key. A permission is a
 * blob of the share beside those of its tree, under a name made of the digest of its text: so the same text has the same key, and no text
 * ever changes. Nothing checks rights by it: REST requests have those of the account, and clients of SMB will read the text.
 */
import { badHeader, checkPermissionFormat, isSddl, type Parsed, parsed, rejected } from "@stamp/azure-rest";
import { utf8 } from "@stamp/base";
import type { Container } from "@stamp/wire";
import { documentBody } from "../body.ts";
import { type Answer, respond } from "../exchange.ts";
import { type FileExchange, leaseOf, locatedOf, shareRow } from "./exchange.ts";

/** Key of the permission that a new file or directory has if its request names none. */
export const defaultPermissionKey = "0*0";
/** Text of the permission with the default key. */
const defaultPermission = "O:SYG:SYD:(A;;FA;;;SY)(A;;FA;;;BA)(A;;0x1200a9;;;BU)(A;OICIIO;GXGR;;;BU)(A;OICIIO;GA;;;CO)";
const permissionBytesMax = 8 * 1024;
const bodyBytesMax = 64 * 1024;
const noHeaders = {
  contentType: "",
  contentEncoding: "",
  contentLanguage: "",
  contentMd5: new Uint8Array(0),
  cacheControl: "",
  contentDisposition: "",
};

const keyForm = /^\d{1,20}\*\d{1,20}$/;
const blobOfKey = (key: string): string => `permission ${key}`;

/** Two numbers, as keys of the service look. */
function keyOf(digest: Uint8Array): string {
  const view = new DataView(digest.buffer, digest.byteOffset, 16);
  return `${view.getBigUint64(0)}*${view.getBigUint64(8)}`;
}

/** Keeps a permission and returns its key. */
export async function keyOfPermission(exchange: FileExchange, row: Container, text: string): Promise<Parsed<string>> {
  if (text === "" || text.length > permissionBytesMax) {
    return badHeader("x-ms-file-permission", "", "A text of 1 to 8,192 bytes; Create Permission takes a longer one.");
  }
  const format = checkPermissionFormat(exchange.headers);
  if (!format.ok) return format;
  return keepPermission(exchange, row, text);
}

async function keepPermission(exchange: FileExchange, row: Container, text: string): Promise<Parsed<string>> {
  if (!isSddl(text)) return rejected("FileInvalidPermission", { Reason: "A permission is text in SDDL, e.g. O:BAG:BAD:(A;;FA;;;SY)." });
  const key = keyOf(exchange.objects.parts.world.digest.sha256(utf8(text)));
  // It is no file of the tree: nothing asks for its node.
  const { policy: _inTree, ...limits } = exchange.limits();
  const body = { inline: utf8(text), places: [] };
  const value = { name: locatedOf(exchange, row, blobOfKey(key)), headers: noHeaders, metadata: {}, body, conditions: {} };
  const put = await exchange.objects.execute({ case: "putBlob", value }, "blob", limits);
  return put.ok ? parsed(key) : put;
}

/** Returns the text of a permission of this share. */
export async function knownPermission(exchange: FileExchange, row: Container, key: string): Promise<Parsed<string>> {
  if (key === defaultPermissionKey) return parsed(defaultPermission);
  if (!keyForm.test(key)) return badHeader("x-ms-file-permission-key", key, "Two numbers as 1*2, which Create Permission answers.");
  const name = locatedOf(exchange, row, blobOfKey(key));
  const value = { name, conditions: {} };
  const found = await exchange.objects.execute({ case: "getBlob", value }, "content", exchange.limits());
  if (!found.ok) {
    return found.error.code === "BlobNotFound" ? rejected("FileInvalidPermissionKey") : found;
  }
  const { inline } = found.value;
  return parsed(new TextDecoder().decode(inline));
}

export async function createPermission(exchange: FileExchange): Promise<Answer> {
  const lease = leaseOf(exchange);
  if (!lease.ok) return lease;
  const body = await documentBody(exchange, bodyBytesMax);
  if (!body.ok) return body;
  const { permission: text, format } = permissionIn(body.value);
  const known = checkPermissionFormat(exchange.headers, format);
  if (!known.ok) return known;
  if (text === undefined) return rejected("InvalidInput", { Reason: 'The body is JSON: {"permission":"…"}.' });
  const row = await shareRow(exchange);
  if (!row.ok) return row;
  const key = await keepPermission(exchange, row.value, text);
  return key.ok ? respond(201, { "x-ms-file-permission-key": key.value }) : key;
}

function permissionIn(body: Uint8Array): { readonly permission?: string; readonly format?: unknown } {
  try {
    const { permission, format } = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body)) as Record<string, unknown>;
    return typeof permission === "string" && permission !== "" ? { permission, format } : { format };
  } catch {
    return {};
  }
}

export async function getPermission(exchange: FileExchange): Promise<Answer> {
  const lease = leaseOf(exchange);
  if (!lease.ok) return lease;
  const key = exchange.headers["x-ms-file-permission-key"];
  if (key === undefined) return rejected("MissingRequiredHeader", { HeaderName: "x-ms-file-permission-key" });
  const format = checkPermissionFormat(exchange.headers);
  if (!format.ok) return format;
  const row = await shareRow(exchange);
  if (!row.ok) return row;
  const text = await knownPermission(exchange, row.value, key);
  if (!text.ok) return text;
  return respond(200, { "Content-Type": "application/json" }, utf8(JSON.stringify({ permission: text.value })));
}
