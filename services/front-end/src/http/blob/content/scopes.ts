/**
 * Under which key the content of a write is encrypted, in this order: the key that the client brings, the encryption scope that it names, the
 * one that its shared access signature is for, then, of a new blob or block, the default of the container, and of a change, the blob's own.
 */
import { type BlobOperationName, badHeader, type Parsed, parsed, parseScope, rejected } from "@stamp/azure-rest";
import type { Answer } from "../../exchange.ts";
import { type BlobExchange, blobOfRequest, containerOfRequest } from "../exchange.ts";

/** Writes whose content replaces the present one, or is put beside it. */
const replacing: ReadonlySet<BlobOperationName> = new Set([
  "PutBlob",
  "PutBlobFromUrl",
  "CopyBlob",
  "CopyBlobFromUrl",
  "PutBlock",
  "PutBlockFromUrl",
  "PutBlockList",
]);
/** Writes of content into a blob that is there. */
const extending: ReadonlySet<BlobOperationName> = new Set(["AppendBlock", "AppendBlockFromUrl", "PutPage", "PutPageFromUrl"]);
/** Writes without content that may name a scope. */
const beside: ReadonlySet<BlobOperationName> = new Set(["SetBlobMetadata", "SnapshotBlob"]);

/** Returns the request with the key of its content, and with the container's row if that was read. */
export async function withKey(exchange: BlobExchange): Promise<Parsed<BlobExchange>> {
  const { operation, access, target, objects } = exchange;
  if (!replacing.has(operation) && !extending.has(operation) && !beside.has(operation)) return parsed(exchange);
  const named = parseScope(exchange.headers, exchange.version);
  if (!named.ok) return named;
  const signed = access.encryptionScope;
  const asked = named.value ?? signed;
  if (signed !== undefined && asked !== signed) return refused(asked, "The shared access signature is for another scope.");
  if (asked !== undefined && exchange.key) return refused(asked, "The request brings a key of the customer, too.");
  const containerRow = containerOfRequest(exchange);
  const row = await containerRow;
  const seen: BlobExchange = { ...exchange, containerRow };
  // The operation answers that, after what is wrong with the request itself.
  if (!row.ok) return parsed(seen);
  const { defaultEncryptionScope, denyEncryptionScopeOverride } = row.value;
  const isOther = exchange.key !== undefined || (asked !== undefined && asked !== defaultEncryptionScope);
  if (denyEncryptionScopeOverride && isOther) return rejected("RequestForbiddenByContainerEncryptionPolicy");
  if (exchange.key) return parsed(seen);
  const scope = asked ?? (replacing.has(operation) && defaultEncryptionScope !== "" ? defaultEncryptionScope : undefined);
  if (scope === undefined) return replacing.has(operation) ? parsed(seen) : withFoundKey(seen);
  const key = await objects.parts.scopes.named(target.account, scope, exchange.limits());
  return key.ok ? parsed({ ...seen, key: key.value }) : key;
}

const refused = (scope: string | undefined, reason: string): Parsed<never> => badHeader("x-ms-encryption-scope", scope ?? "", reason);

/** Reads the blob before a change, if the account has scopes and the blob may be under one. */
async function withFoundKey(exchange: BlobExchange): Promise<Parsed<BlobExchange>> {
  const { account, objects, operation, target } = exchange;
  const scopes = [...account.encryptionScopes.values()];
  // A request without content asks only whether it is allowed.
  if (!scopes.some(({ disabled }) => disabled || extending.has(operation))) return parsed(exchange);
  const name = await blobOfRequest(exchange);
  if (!name.ok) return parsed(exchange);
  const value = { name: name.value, withoutContent: true, withoutKey: true };
  const blob = await objects.execute({ case: "getBlob", value }, "blob", exchange.limits());
  if (!blob.ok || blob.value.encryptionScope === undefined) return parsed(exchange);
  const key = await objects.parts.scopes.key(target.account, blob.value.encryptionScope, exchange.limits());
  if (!key.ok || !extending.has(operation)) return key.ok ? parsed(exchange) : key;
  return parsed({ ...exchange, key: { ...key.value, asFound: true } });
}

/** Reads the account again: a blob may be under its first scope before this front-end knows of one. */
export function seeAgain({ accounts, account, operation, target, limits }: BlobExchange, answer: Answer): void {
  const isBusy = !answer.ok && answer.error.code === "ServerBusy";
  if (isBusy && extending.has(operation) && account.encryptionScopes.size === 0) void accounts.findAgain(target.account, limits());
}
