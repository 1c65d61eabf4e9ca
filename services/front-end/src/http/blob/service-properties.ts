/** Set Blob Service Properties: a static website that is switched on has its container. */
import { decodeServiceProperties } from "@stamp/azure-rest";
import type { Answer } from "../exchange.ts";
import { analyticsUnsupported, setServiceProperties } from "../service-properties.ts";
import { websiteContainer } from "../website.ts";
import type { BlobExchange } from "./exchange.ts";

export async function setBlobServiceProperties(exchange: BlobExchange): Promise<Answer> {
  const set = await setServiceProperties(exchange, "blob", analyticsUnsupported);
  if (!set.ok) return set;
  const { account } = exchange.target;
  const row = await exchange.objects.execute({ case: "getAccount", value: { account } }, "account", exchange.limits());
  if (!row.ok) return row;
  return websiteIsOn(row.value.serviceProperties.blob) ? withContainer(exchange, set) : set;
}

const websiteIsOn = (text: string | undefined): boolean => decodeServiceProperties(text ?? "")?.staticWebsite.enabled ?? false;

async function withContainer(exchange: BlobExchange, set: Answer): Promise<Answer> {
  const value = { account: exchange.target.account, container: websiteContainer, metadata: {}, publicAccess: "" };
  const made = await exchange.objects.execute({ case: "createContainer", value }, "container", exchange.limits());
  return made.ok || made.error.code === "ContainerAlreadyExists" ? set : made;
}
