/** Get and Set Service Properties of any service: kept in the account's row, changed in one step, in force here at once. */
import {
  decodeServiceProperties,
  encodeServiceProperties,
  notImplemented,
  type Parsed,
  parsed,
  parseServiceProperties,
  restError,
  type ServiceName,
  type ServiceProperties,
  servicePropertiesBytesMax,
  servicePropertiesXml,
} from "@stamp/azure-rest";
import { utf8 } from "@stamp/base";
import { documentBody } from "./body.ts";
import { type Answer, type Exchange, respond } from "./exchange.ts";

/** Two requests that set properties at once are decided one after the other; more often than this is a storm. */
const attemptsMax = 8;

/** Returns the name of a setting that is not supported; undefined: all are. */
export type Unsupported = (properties: ServiceProperties) => string | undefined;

/** Features that no service has here: there is no writer of $logs and $Metrics…. */
export function analyticsUnsupported({ logging, hourMetrics, minuteMetrics }: ServiceProperties): string | undefined {
  if (logging.delete || logging.read || logging.write) return "Storage Analytics logging";
  if (hourMetrics.enabled || minuteMetrics.enabled) return "Storage Analytics metrics";
  return undefined;
}

async function propertiesHeld(
  exchange: Exchange,
  service: ServiceName,
): Promise<Parsed<{ text: string; geoRole: string; properties: ServiceProperties }>> {
  const { account } = exchange.target;
  const row = await exchange.objects.execute({ case: "getAccount", value: { account } }, "account", exchange.limits());
  if (!row.ok) return row;
  const text = row.value.serviceProperties[service] ?? "";
  const properties = decodeServiceProperties(text);
  return properties ? parsed({ text, geoRole: row.value.geoRole, properties }) : { ok: false, error: restError("InternalError") };
}

export async function getServiceProperties(exchange: Exchange, service: ServiceName): Promise<Answer> {
  const held = await propertiesHeld(exchange, service);
  if (!held.ok) return held;
  const body = utf8(servicePropertiesXml(held.value.properties, service, exchange.version));
  return respond(200, { "Content-Type": "application/xml" }, body);
}

export async function setServiceProperties(exchange: Exchange, service: ServiceName, unsupported: Unsupported): Promise<Answer> {
  const body = await documentBody(exchange, servicePropertiesBytesMax);
  if (!body.ok) return body;
  const { account } = exchange.target;
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const held = await propertiesHeld(exchange, service);
    if (!held.ok) return held;
    const next = parseServiceProperties(body.value, service, held.value.properties);
    if (!next.ok) return next;
    const feature = unsupported(next.value);
    if (feature !== undefined) return notImplemented(feature);
    const value = {
      account,
      serviceProperties: { [service]: encodeServiceProperties(next.value) },
      expectedServiceProperties: { [service]: held.value.text },
      ...(held.value.geoRole === "" ? {} : { expectedGeoRole: held.value.geoRole }),
    };
    const changed = await exchange.objects.execute({ case: "changeAccount", value }, "account", exchange.limits());
    if (changed.ok) {
      exchange.accounts.forget(account);
      return respond(202);
    }
    if (changed.error.code !== "ConditionNotMet") return changed;
  }
  return { ok: false, error: restError("ServerBusy") };
}
