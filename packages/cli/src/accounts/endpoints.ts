/**
 * Where an account's services are, at the stamp that was asked and at the stamp of its copy, and connection strings for both. The stamps
 * of one folder (`stamp up --stamps`) are known; of any other stamp only its name is.
 */
import { dirname, resolve } from "node:path";
import { type ClusterConfig, planCluster } from "@stamp/cluster";
import type { Account } from "@stamp/wire";
import { severalIn } from "../stamps/several.ts";

const services = ["blob", "queue", "table"] as const;
/** URL of each service; empty: the service is not known there. */
export type ServiceUrls = Readonly<Record<(typeof services)[number], string>>;

export interface AccountEndpoints {
  /** URLs that take reads and writes; undefined at the stamp of a copy, if the other stamp is not known. */
  readonly primary: ServiceUrls | undefined;
  /** URLs of the copy, which take reads; undefined: there is none, or its stamp is not known. */
  readonly secondary: ServiceUrls | undefined;
  /** Name of the other stamp; empty: the account has one stamp. */
  readonly peer: string;
}

/** Part of the text of a role (docs/formats/account.md). */
interface RoleText {
  readonly role?: string;
  readonly peer?: string;
  /** True if queues are copied, too. */
  readonly queues?: boolean;
}

function roleIn(text: string): RoleText {
  try {
    return text === "" ? {} : (JSON.parse(text) as RoleText);
  } catch {
    return {};
  }
}

/** Returns the URLs of an account, made from `urls` of another account. */
export const urlsOf = (urls: ServiceUrls, account: string): ServiceUrls => {
  const of = (url: string): string => (url === "" ? "" : `${new URL(url).origin}/${account}`);
  return { blob: of(urls.blob), queue: of(urls.queue), table: of(urls.table) };
};

/** Returns the URLs of an account's copy, where `urls` are those of another account. Without copied queues the copy serves none. */
export function urlsOfCopy(urls: ServiceUrls, account: string, hasQueues: boolean): ServiceUrls {
  const copy = urlsOf(urls, `${account}-secondary`);
  return hasQueues ? copy : { ...copy, queue: "" };
}

/** Returns the URLs of a stamp beside this one, by its name; undefined if it is in no folder with this one. */
export function neighbour(config: Pick<ClusterConfig, "dataDir">, stamp: string): ServiceUrls | undefined {
  for (const dataDir of [config.dataDir, dirname(resolve(config.dataDir))]) {
    const found = severalIn({ dataDir })?.stamps.find(({ name }) => name === stamp);
    if (found !== undefined) return planCluster(found.config).endpoints;
  }
  return undefined;
}

/** `here`: URLs of the stamp that told of the account. `other`: those of the stamp with this name, if they are known. */
export function endpointsOfAccount(
  { name, geoRole }: Pick<Account, "name" | "geoRole">,
  here: ServiceUrls,
  other: (stamp: string) => ServiceUrls | undefined,
): AccountEndpoints {
  const { role, peer = "", queues = false } = roleIn(geoRole);
  const there = peer === "" ? undefined : other(peer);
  const follows = role === "secondary" || role === "unseeded";
  const [first, second] = follows ? [there, here] : [here, there];
  return { primary: first && urlsOf(first, name), secondary: second && urlsOfCopy(second, name, queues), peer };
}

/** Returns the lines that say where the account is; with its key a connection string, too. */
export function endpointLinesOf(account: string, key: string | undefined, { primary, secondary, peer }: AccountEndpoints): string[] {
  const shown = (urls: ServiceUrls, title: string): string[] =>
    services.filter((service) => urls[service] !== "").map((service) => `${`${service}${title}`.padEnd(20)}${urls[service]}`);
  const unknown = `at stamp ${peer}: its front-ends serve ${account}${primary === undefined ? "" : "-secondary, read only"}`;
  return [
    ...(primary === undefined ? [] : shown(primary, "")),
    ...(secondary === undefined ? [] : shown(secondary, ", read only")),
    ...(peer !== "" && (primary === undefined || secondary === undefined) ? [`${"other endpoints".padEnd(20)}${unknown}`] : []),
    ...(key === undefined || primary === undefined ? [] : [`connection string   ${connectionString(account, key, primary, secondary)}`]),
  ];
}

/** Returns a connection string as the reference has it. SDKs for Python take no URL for a secondary: docs/guides/access.md. */
function connectionString(account: string, key: string, primary: ServiceUrls, secondary: ServiceUrls | undefined): string {
  const scheme = new URL(primary.blob).protocol.slice(0, -1);
  const titled = { blob: "Blob", queue: "Queue", table: "Table" };
  const parts = services.flatMap((service) => [
    ...(primary[service] === "" ? [] : [`${titled[service]}Endpoint=${primary[service]}`]),
    ...(secondary === undefined || secondary[service] === "" ? [] : [`${titled[service]}SecondaryEndpoint=${secondary[service]}`]),
  ]);
  return `${[`DefaultEndpointsProtocol=${scheme}`, `AccountName=${account}`, `AccountKey=${key}`, ...parts].join(";")};`;
}
