/** Where an account is: its name, its key and the URLs of its services. */
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { decodeServiceProperties } from "@stamp/azure-rest";
import { Accounts } from "@stamp/wire";
import type { Command } from "commander";
import { type ServiceUrls, urlsOf } from "../accounts/endpoints.ts";
import { CommandError, exitCodes } from "../exit.ts";
import { inspect } from "../running.ts";

export interface AccountPlace {
  readonly account: string;
  /** In base64. */
  readonly key: string;
  readonly urls: ServiceUrls;
}

const callTimeoutMs = 10_000;
const connectTimeoutMs = 2_000;
/** The account that every emulator has; its key is public. */
export const developmentAccount = "devstoreaccount1";
export const developmentKey = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

/** The account of the stamp that runs here, or the account of the connection string. */
export async function placeOf(command: Command, account: string, connectionString: string | undefined): Promise<AccountPlace> {
  if (connectionString === undefined) return placeHere(command, account);
  const place = placeIn(connectionString);
  if (place.account !== account)
    throw new CommandError(`the connection string is of account ${place.account}, not of ${account}`, exitCodes.usage);
  await checkListens(place);
  return place;
}

/** Throws a CommandError if at a service's address nothing listens: the SDKs' retries, which are for what dies later, would take a minute. */
export async function checkListens({ urls }: AccountPlace): Promise<void> {
  const refused = await Promise.all(
    Object.entries(urls).map(async ([service, url]) => ((await isRefused(url)) ? `${service} at ${url}` : [])),
  );
  const silent = refused.flat();
  if (silent.length > 0)
    throw new CommandError(`nothing listens there: ${silent.join(", ")}; start it, or give the addresses in a connection string`);
}

/** True if the host refuses the connection. Any other end, also none in time, is left to the requests, which say more. */
function isRefused(text: string): Promise<boolean> {
  const { hostname, port, protocol } = new URL(text);
  const host = hostname.replace(/^\[|\]$/g, "");
  const socket = connect({ host, port: Number(port || (protocol === "https:" ? 443 : 80)), timeout: connectTimeoutMs });
  return new Promise<boolean>((resolve) => {
    socket.once("connect", () => resolve(false));
    socket.once("timeout", () => resolve(false));
    socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code === "ECONNREFUSED"));
  }).finally(() => socket.destroy());
}

/** Says why an account with directories is refused. */
export const hierarchical = (name: string): CommandError =>
  new CommandError(
    `account ${name} has a hierarchical namespace, whose owners and lists of access control no archive has: copy it with a tool for Data Lake Storage`,
  );

async function placeHere(command: Command, name: string): Promise<AccountPlace> {
  return inspect(command, async (inspector, transport, _lockService, { endpoints }) => {
    const accounts = transport.client(await inspector.leader("partition-manager"), Accounts);
    const found = await accounts.get({ account: name }, { timeoutMs: callTimeoutMs });
    if (!found.ok)
      throw new CommandError(`${found.failure.message}; accounts: ./stamp account list, a new one: ./stamp account create ${name}`);
    const [key] = found.value.keys;
    if (key === undefined) throw new CommandError(`account ${name} has no key here`);
    if (decodeServiceProperties(found.value.serviceProperties.blob ?? "")?.hierarchicalNamespace === true) throw hierarchical(name);
    return { account: name, key, urls: urlsOf(endpoints, name) };
  });
}

/** Reads the file of `@FILE`: everybody on a machine sees the arguments of its processes. */
function textOf(given: string): string {
  if (!given.startsWith("@")) return given;
  const path = given.slice(1);
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new CommandError(`the file of the connection string can't be read: ${(error as Error).message}`, exitCodes.usage);
  }
}

/** Reads a connection string with a key, or the file of `@FILE` with one. Throws a CommandError, which never repeats it. */
export function placeIn(connectionString: string): AccountPlace {
  const parts = new Map(
    textOf(connectionString)
      .split(";")
      .map((part) => part.trim())
      .filter((part) => part !== "")
      .map((part): [string, string] => {
        const at = part.indexOf("=");
        return [part.slice(0, Math.max(at, 0)).toLowerCase(), part.slice(at + 1)];
      }),
  );
  if (parts.get("usedevelopmentstorage") === "true") return emulatorAt("http://127.0.0.1:10000");
  const account = parts.get("accountname") ?? "";
  const key = parts.get("accountkey") ?? "";
  const missing = [...(account === "" ? ["AccountName"] : []), ...(key === "" ? ["AccountKey"] : [])];
  if (missing.length > 0) throw new CommandError(`the connection string has no ${missing.join(" and no ")}`, exitCodes.usage);
  const protocol = parts.get("defaultendpointsprotocol") ?? "https";
  const suffix = parts.get("endpointsuffix") ?? "core.windows.net";
  const url = (service: "blob" | "queue" | "table"): string =>
    checkedUrl(parts.get(`${service}endpoint`) ?? `${protocol}://${account}.${service}.${suffix}`);
  return { account, key, urls: { blob: url("blob"), queue: url("queue"), table: url("table") } };
}

/** Reads the URL of an emulator's Blob service: its other services have the next two ports. */
export function emulatorAt(text: string): AccountPlace {
  const url = new URL(checkedUrl(text));
  const [account = developmentAccount, ...more] = url.pathname.split("/").filter((part) => part !== "");
  if (account !== developmentAccount || more.length > 0)
    throw new CommandError(
      `${url.origin} has another account than ${developmentAccount}: give a connection string with its key`,
      exitCodes.usage,
    );
  if (url.port === "")
    throw new CommandError(
      "the URL has no port: that of the Blob service is 10000 unless the emulator was told otherwise",
      exitCodes.usage,
    );
  const at = (more: number): string => `${url.protocol}//${url.hostname}:${Number(url.port) + more}/${account}`;
  return { account, key: developmentKey, urls: { blob: at(0), queue: at(1), table: at(2) } };
}

function checkedUrl(text: string): string {
  const url = URL.parse(text);
  if (url === null || !["http:", "https:"].includes(url.protocol) || url.username !== "" || url.search !== "")
    throw new CommandError("an endpoint is a URL, such as http://127.0.0.1:10000/devstoreaccount1", exitCodes.usage);
  return text.replace(/\/+$/, "");
}
