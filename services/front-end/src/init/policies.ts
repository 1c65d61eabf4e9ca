/** Stored access policies and public access of a container, table or queue. */
import { parseIso, parseSignedIdentifiers, signedIdentifiersXml } from "@stamp/azure-rest";
import { utf8 } from "@stamp/base";
import type { InitCounts, InitTarget } from "./applying.ts";
import { InitError } from "./load-init.ts";
import type { InitService } from "./own-requests.ts";
import type { InitPolicies } from "./schema.ts";

export interface PolicyPlace {
  readonly service: InitService;
  readonly account: string;
  /** Path of the access list, behind the account's name. */
  readonly path: string;
  /** Kind of object that has the policy, for messages. */
  readonly what: string;
}

/** Sets the policies, if there are none or they are to be replaced. */
export async function applyPolicies(
  { requests, differs }: InitTarget,
  { service, account, path, what }: PolicyPlace,
  wanted: InitPolicies,
  overwrite: boolean,
  counts: InitCounts,
): Promise<void> {
  if (wanted === undefined) return;
  const policies = wanted.map(({ id, permissions, startsOn, expiresOn }) => ({
    id,
    permissions,
    startMs: startsOn === undefined ? undefined : parseIso(startsOn),
    expiryMs: expiresOn === undefined ? undefined : parseIso(expiresOn),
  }));
  const got = await requests.ask(service, account, { method: "GET", path }, [200]);
  const held = parseSignedIdentifiers(got.body, service);
  if (!held.ok) throw new InitError(`access policies of ${what}: ${held.error.code}`);
  const body = signedIdentifiersXml(policies);
  if (signedIdentifiersXml(held.value) === body) return;
  if (held.value.length > 0 && !overwrite) {
    differs(`${what} has other access policies than the init file says; they stay ("overwrite": true replaces them)`);
    return;
  }
  const access = got.headers["x-ms-blob-public-access"];
  const headers = { "content-type": "application/xml", ...(access === undefined ? {} : { "x-ms-blob-public-access": access }) };
  await requests.ask(service, account, { method: "PUT", path, headers, body: utf8(body) }, [200, 201, 204]);
  counts.policies++;
}
