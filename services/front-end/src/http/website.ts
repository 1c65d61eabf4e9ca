/**
 * Static websites: `GET http://acct.web.localhost:10000/path` gives the blob `path` of the container `$web` to everybody, when the account's
 * service properties switch that on. A path that ends with a slash means the index document in it, and so does one that is no blob's; what
 * is not there, or can't be, is the error document, with 404. Queries mean nothing; nothing of the REST API is here.
 */
import { accountOfHost, canonicalPath, decodePercent, isAccountName, type StaticWebsite } from "@stamp/azure-rest";
import { utf8 } from "@stamp/base";
import type { HttpHandler, HttpRequest, HttpResponse, World } from "@stamp/ports";
import type { Accounts } from "../accounts/accounts.ts";
import type { HttpDoor } from "./door.ts";

export const websiteContainer = "$web";
const nothing = "There is no website here.";
const reads: ReadonlySet<string> = new Set(["GetBlob", "GetBlobProperties"]);
/** Headers of a browser that count for reading a blob; every other one is left out. */
const headersKept = ["range", "if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since"] as const;

export interface WebsiteParts {
  readonly world: World;
  readonly accounts: Accounts;
  readonly door: HttpDoor;
  readonly hostSuffixes: readonly string[];
  readonly lookupTimeoutMs: number;
}

/** Returns a handler of static websites; it answers undefined for a host that is no website's. */
export function websiteHandler(parts: WebsiteParts): (request: HttpRequest) => Promise<HttpResponse> | undefined {
  return (request) => {
    const account = accountOfHost(request.headers.host ?? "", parts.hostSuffixes);
    return account === undefined ? undefined : answer(parts, account, request);
  };
}

async function answer(parts: WebsiteParts, account: string, request: HttpRequest): Promise<HttpResponse> {
  if (request.method !== "GET" && request.method !== "HEAD") {
    return page(request, 405, "A website is read only.", { Allow: "GET, HEAD" });
  }
  const { world, accounts } = parts;
  const deadlineMs = world.clock.monotonicMs() + parts.lookupTimeoutMs;
  if (!isAccountName(account)) return page(request, 404, nothing);
  const found = await accounts.find(account, { deadlineMs, signal: request.signal });
  if (!found?.ok) return page(request, 503, "The server is busy.");
  const website = found.value.kind === "known" ? found.value.serviceProperties.blob.staticWebsite : undefined;
  if (!website?.enabled) return page(request, 404, nothing);
  const names = documentsOf(request.target, website);
  if (names === undefined) return page(request, 400, "The path is not percent-encoded UTF-8.");
  for (const name of names) {
    const given = await read(parts, request, account, name, true);
    if (!isNothing(given)) return given;
  }
  const { errorDocument404Path: other } = website;
  const instead = other === undefined ? undefined : await read(parts, request, account, other, false);
  return instead?.status === 200 ? { ...instead, status: 404 } : page(request, 404, "The requested content does not exist.");
}

/** Codes of names that no blob can have: too long, or of too many segments. */
const impossible: ReadonlySet<unknown> = new Set(["OutOfRangeInput", "InvalidResourceName"]);

const isNothing = ({ status, headers }: HttpResponse): boolean =>
  status === 404 || (status === 400 && impossible.has(headers["x-ms-error-code"]));

/** Returns the blobs that a path may mean, the first that is there counts; undefined if the path is no text. */
function documentsOf(target: string, website: StaticWebsite): string[] | undefined {
  const literal = decodePercent((target.split("?")[0] ?? "").slice(1));
  if (literal === undefined) return undefined;
  const path = canonicalPath(literal);
  if (path === "" && website.defaultIndexDocumentPath !== undefined) return [website.defaultIndexDocumentPath];
  const isFolder = path === "" || path.endsWith("/");
  const index = website.indexDocument === undefined ? [] : [`${path}${isFolder ? "" : "/"}${website.indexDocument}`];
  return isFolder ? index : [literal, ...index];
}

async function read(parts: WebsiteParts, request: HttpRequest, account: string, name: string, conditioned: boolean): Promise<HttpResponse> {
  const headers: Record<string, string> = {};
  for (const header of conditioned ? headersKept : []) {
    const value = request.headers[header];
    if (value !== undefined) headers[header] = value;
  }
  // Read as the owner: a path that leads out of the website's container is cut at its root.
  const inside = canonicalPath(`${websiteContainer}/${name}`).startsWith(`${websiteContainer}/`) ? name : canonicalPath(name);
  const target = `/${account}/${encodeURIComponent(websiteContainer)}/${inside.split("/").map(encodeURIComponent).join("/")}`;
  const { method, remoteAddress, secure, signal, body } = request;
  const answer = await parts.door.handleAsOwner({ method, target, headers, remoteAddress, secure, signal, body }, reads);
  // The files of a website are its owner's; browsers may guess the type of those that were uploaded without one, as at the service.
  const { "X-Content-Type-Options": _, ...shown } = answer.headers;
  return { ...answer, headers: shown };
}

function page(request: HttpRequest, status: number, text: string, headers: Record<string, string> = {}): HttpResponse {
  const body = utf8(`<!DOCTYPE html><html><head><title>${status}</title></head><body><h1>${status}</h1><p>${text}</p></body></html>`);
  const all = { ...headers, "Content-Type": "text/html; charset=utf-8", "Content-Length": String(body.length) };
  return request.method === "HEAD" ? { status, headers: all } : { status, headers: all, body };
}

/** Websites on the port of the Blob service. */
export const withWebsites = (website: ReturnType<typeof websiteHandler>, blob: HttpHandler): HttpHandler =>
  Object.assign((request: HttpRequest) => website(request) ?? blob(request), blob.refused && { refused: blob.refused });
