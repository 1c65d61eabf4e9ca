/** A stamp with what the tests of authorization ask of it: containers of every level of public access, a queue, a table, and keys. */
import assert from "node:assert/strict";
import { Agent, request as httpRequest } from "node:http";
import { after, before } from "node:test";
import { type Stamp, startStamp, threeOnDisk } from "@stamp/embedded";
import type { Logger } from "@stamp/ports";
import type { ExpectedRow, Service } from "./authorization-table.ts";
import { type DelegationKey, delegationKey } from "./delegation.ts";
import { type TestIssuer, testIssuer } from "./issuer.ts";
import type { SignedFor } from "./sas-by-hand.ts";
import { accountKey, accountName } from "./scripted-stamp.ts";
import { Clients } from "./target.ts";

export const services: readonly Service[] = ["blob", "queue", "table"];
export const roles = ["read", "contribute", "own"] as const;
export const groupOf = { read: "readers", contribute: "writers", own: "owners" } as const;
export const letters = "rwdlacxyupftmeoi";
export const version = "2026-04-06";
export const noPermission = "403 AuthorizationPermissionMismatch";
export const noAuthentication = "401 NoAuthenticationInformation";

export interface Answer {
  readonly status: number;
  /** Status and error code. */
  readonly told: string;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly text: string;
}

function loggerInto(lines: string[]): Logger {
  const line = (message: string, fields?: object): void => {
    if (message === "request")
      lines.push(JSON.stringify({ message, ...fields }, (_, value) => (value instanceof Error ? value.stack : value)));
  };
  const logger: Logger = { debug: line, info: line, warn: line, error: line, child: () => logger };
  return logger;
}

/** Started before and stopped after the tests of the suite that calls this. */
export function authorizationStamp() {
  let issuer: TestIssuer;
  let stamp: Stamp;
  /** Every line of every role, whatever its level. */
  const logged: string[] = [];
  const agent = new Agent({ keepAlive: true, maxSockets: 16 });
  const clients = new Map<Service, Clients>();
  const keys = new Map<string, DelegationKey>();
  const signed = (service: Service): SignedFor => ({ service, account: accountName, key: accountKey });

  const ask = (service: Service, method: string, target: string, headers: Record<string, string> = {}, body = ""): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const { hostname, port } = new URL(stamp.endpoints[service]);
      const own = { "x-ms-version": version, "content-length": String(Buffer.byteLength(body)), ...headers };
      const sent = httpRequest({ agent, hostname, port, method, path: `/${accountName}${target}`, headers: own }, (answer) => {
        const chunks: Buffer[] = [];
        answer.on("data", (chunk: Buffer) => chunks.push(chunk));
        answer.on("end", () => {
          const status = answer.statusCode ?? 0;
          const told = `${status} ${answer.headers["x-ms-error-code"] ?? ""}`.trim();
          resolve({ status, told, headers: answer.headers, text: Buffer.concat(chunks).toString() });
        });
      });
      sent.on("error", reject);
      sent.end(body);
    });

  /** As the account itself: what a test prepares. */
  const owner = async (
    service: Service,
    method: string,
    path: string,
    headers: Record<string, string> = {},
    body = "",
  ): Promise<Response> => {
    const answer = await (clients.get(service) as Clients).raw(method, path, { headers: { "x-ms-version": version, ...headers }, body });
    assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${answer.headers.get("x-ms-error-code")}`);
    return answer;
  };
  const code = async (...request: Parameters<typeof ask>): Promise<string> => (await ask(...request)).told;
  const withQuery = (target: string, query: string): string => `${target}${target.includes("?") ? "&" : "?"}${query}`;

  before(async () => {
    issuer = await testIssuer();
    stamp = await startStamp({ ...threeOnDisk, oidc: issuer.settings, logger: loggerInto(logged) });
    for (const service of services) {
      const target = { endpoint: new URL(stamp.endpoints[service]).origin, accountName, accountKey, issuer, stop: async () => {} };
      const own = new Clients(target);
      clients.set(service, Object.assign(own, { signing: service }));
      for (const role of roles) keys.set(`${service} ${role}`, await delegationKey(own, groupOf[role], "/"));
    }
    for (const [name, access] of [
      ["walk", ""],
      ["walkblob", "blob"],
      ["walkcontainer", "container"],
    ]) {
      await owner("blob", "PUT", `/${name}?restype=container`, access ? { "x-ms-blob-public-access": access } : {});
      await owner("blob", "PUT", `/${name}/b`, { "x-ms-blob-type": "BlockBlob", "x-ms-tags": "a=b" }, "text");
      await owner("blob", "PUT", `/${name}/p`, { "x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "512" });
    }
    await owner("queue", "PUT", "/walk");
    await owner("table", "POST", "/Tables", { "content-type": "application/json" }, '{"TableName":"walk"}');
  });
  after(async () => {
    agent.destroy();
    await stamp?.stop();
    issuer?.remove();
  });

  const requestOf = (row: ExpectedRow, container: string) => {
    const put = (text: string): string => text.replaceAll("{c}", container).replaceAll("{url}", `${stamp.endpoints.blob}/none/x`);
    const headers = Object.fromEntries(Object.entries(row.headers).map(([name, value]) => [name, put(value)]));
    return { method: row.method, target: put(row.target), headers };
  };
  const asked = (
    service: Service,
    row: ExpectedRow,
    query = "",
    headers: Record<string, string> = {},
    container = "walk",
  ): Promise<string> => {
    const { method, target, headers: own } = requestOf(row, container);
    return code(service, method, query === "" ? target : withQuery(target, query), { ...own, ...headers });
  };

  /** Container, blob, queue or table that a request names; undefined: the account. */
  function namedBy(
    service: Service,
    { target }: { readonly target: string },
  ): { readonly name: string; readonly blob: string } | undefined {
    const path = decodeURIComponent(target.slice(1).split("?")[0] ?? "");
    if (service === "table") {
      const name = /^Tables\('(.*)'\)$/.exec(path)?.[1] ?? path.split("(")[0] ?? "";
      return name === "Tables" || name === "$batch" || name === "" ? undefined : { name, blob: "" };
    }
    const [name = "", blob = ""] = path.split("/");
    return name === "" ? undefined : { name, blob };
  }

  const isEnough = (groups: readonly string[] | undefined, held: string): boolean =>
    groups?.every((group) => [...group].some((letter) => held.includes(letter))) ?? false;
  /** Each letter alone, all of them, and all without one of those that count: that tells "or" from "and". `few`: of letters those that count. */
  const heldBy = (groups: readonly string[] | undefined, few = false): string[] => {
    const counting = groups === undefined || groups.some((group) => group.length > 8) ? "" : [...new Set(groups.join(""))].join("");
    return [...(few ? counting : letters), letters, ...[...counting].map((letter) => letters.replace(letter, ""))];
  };

  const wrong: string[] = [];
  function expectLetIn(what: string, told: string, letIn: boolean, refusal = noPermission): void {
    const status = Number(told.slice(0, 3));
    const good = letIn ? status !== 401 && status !== 403 && status < 500 : told === refusal;
    if (!good) wrong.push(`${what}: ${told}, expected ${letIn ? "to be let in" : refusal}`);
  }
  const expectGood = (what: string, told: string): void => {
    if (Number(told.slice(0, 3)) >= 300) wrong.push(`${what}: ${told}`);
  };
  const noneWrong = (): void => assert.deepEqual(wrong.splice(0), []);

  async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
    let next = 0;
    const one = async (): Promise<void> => {
      for (let at = next++; at < items.length; at = next++) await work(items[at] as T);
    };
    await Promise.all(Array.from({ length: 16 }, one));
  }

  return {
    ask,
    asked,
    clients,
    code,
    expectGood,
    expectLetIn,
    heldBy,
    inParallel,
    isEnough,
    keys,
    logged,
    namedBy,
    noneWrong,
    owner,
    requestOf,
    signed,
    stamp: () => stamp,
    withQuery,
  };
}
