/** Get and Set Container ACL: who may read without authorization, and the stored access policies. */
import { etagAndTime, parseConditions, parseSignedIdentifiers, signedIdentifiersXml } from "@stamp/azure-rest";
import { utf8 } from "@stamp/base";
import { signedIdentifiersFromWire, signedIdentifiersToWire } from "@stamp/wire";
import { conditionsToWire } from "../../objects/wire-conditions.ts";
import { containerOf } from "../../objects/wire-to-rest.ts";
import { documentBody } from "../body.ts";
import { type Answer, respond } from "../exchange.ts";
import { conditionedContainer, publicAccessOf } from "./containers.ts";
import type { BlobExchange } from "./exchange.ts";

const bodyBytesMax = 64 * 1024;

export async function getContainerAcl(exchange: BlobExchange): Promise<Answer> {
  const row = await conditionedContainer(exchange);
  if (!row.ok) return row;
  const { publicAccess } = row.value;
  const headers = {
    ...etagAndTime(exchange.version, containerOf(row.value)),
    ...(publicAccess === "" ? {} : { "x-ms-blob-public-access": publicAccess }),
    "Content-Type": "application/xml",
  };
  return respond(200, headers, utf8(signedIdentifiersXml(signedIdentifiersFromWire(row.value.signedIdentifiers))));
}

export async function setContainerAcl(exchange: BlobExchange): Promise<Answer> {
  const access = publicAccessOf(exchange);
  if (!access.ok) return access;
  const conditions = parseConditions(exchange.headers);
  if (!conditions.ok) return conditions;
  const body = await documentBody(exchange, bodyBytesMax);
  if (!body.ok) return body;
  const identifiers = parseSignedIdentifiers(body.value, "blob");
  if (!identifiers.ok) return identifiers;
  const { account, container = "" } = exchange.target;
  const value = {
    account,
    container,
    publicAccess: access.value,
    signedIdentifiers: signedIdentifiersToWire(identifiers.value),
    conditions: conditionsToWire(conditions.value),
  };
  const changed = await exchange.objects.execute({ case: "setContainerAcl", value }, "container", exchange.limits());
  return changed.ok ? respond(200, etagAndTime(exchange.version, containerOf(changed.value))) : changed;
}
