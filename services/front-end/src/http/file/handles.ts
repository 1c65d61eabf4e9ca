/**
 * List Handles and Force Close Handles. Nobody opens a file here: there is no SMB door, and REST requests hold no handle. So a file or
 * directory that is there has none.
 */
import { type Parsed, rejected } from "@stamp/azure-rest";
import { utf8 } from "@stamp/base";
import { resolve } from "@stamp/tree";
import { type Answer, respond } from "../exchange.ts";
import { type FileExchange, leaseOf, shareRow, treeNameOf } from "./exchange.ts";
import { refusedFile } from "./refusals.ts";

const noHandles = '<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Entries /><NextMarker /></EnumerationResults>';

/** Refused if the path names nothing. Undefined: it does. */
async function refusedPath(exchange: FileExchange): Promise<Extract<Parsed<never>, { readonly ok: false }> | undefined> {
  const lease = leaseOf(exchange);
  if (!lease.ok) return lease;
  const row = await shareRow(exchange);
  if (!row.ok) return row;
  const { path } = exchange.resource;
  const tree = treeNameOf(exchange, row.value);
  const found = await exchange.objects.parts.trees.run(tree, (context) => resolve(context, path), exchange.limits());
  if (found.ok) return undefined;
  return found.refusal === "notFound" || found.refusal === "notDirectory" ? rejected("ResourceNotFound") : refusedFile(found);
}

export async function listHandles(exchange: FileExchange): Promise<Answer> {
  const refused = await refusedPath(exchange);
  return refused ?? respond(200, { "Content-Type": "application/xml" }, utf8(noHandles));
}

export async function forceCloseHandles(exchange: FileExchange): Promise<Answer> {
  if (exchange.headers["x-ms-handle-id"] === undefined) return rejected("MissingRequiredHeader", { HeaderName: "x-ms-handle-id" });
  const refused = await refusedPath(exchange);
  const none = { "x-ms-number-of-handles-closed": "0", "x-ms-number-of-handles-failed": "0" };
  return refused ?? respond(200, none);
}
