/**
 * The bodies of Get and Set Blob (Queue, Table) Service Properties. A root element that Set leaves out stays as it was; one that is there
 * replaces what was set before as a whole.
 */
import { notImplemented, type Parsed, parsed, rejected } from "../rest-error.ts";
import { behavesAs, isVersion } from "../version.ts";
import { badNode, childOf, childText, missingNode, parseXml, type XmlElement } from "../xml/xml.ts";
import { element, trimXml } from "../xml/xml-text.ts";
import type { CorsRule, Logging, Metrics, RetentionPolicy, ServiceName, ServiceProperties, StaticWebsite } from "./service-properties.ts";

export const servicePropertiesBytesMax: number = 64 * 1024;
const corsRulesMax = 5;
const corsCharactersMax = 2 * 1024;
const corsValueCharactersMax = 256;
const retentionDaysMax = 365;
const corsMethods: ReadonlySet<string> = new Set(["DELETE", "GET", "HEAD", "MERGE", "PATCH", "POST", "OPTIONS", "PUT"]);

type Changes = { -readonly [K in keyof ServiceProperties]?: ServiceProperties[K] };

/** Parses new properties and lays them over the present ones. */
export function parseServiceProperties(body: Uint8Array, service: ServiceName, held: ServiceProperties): Parsed<ServiceProperties> {
  const root = parseXml(body, servicePropertiesBytesMax);
  if (!root.ok) return root;
  if (root.value.name !== "StorageServiceProperties") return rejected("InvalidXmlDocument");
  const changes: Changes = {};
  for (const node of root.value.children) {
    const error = readRoot(node, service, changes);
    if (!error.ok) return error;
  }
  return parsed({ ...held, ...changes });
}

function readRoot(node: XmlElement, service: ServiceName, changes: Changes): Parsed<void> {
  const into = <K extends keyof ServiceProperties>(key: K, value: Parsed<ServiceProperties[K]>): Parsed<void> => {
    if (!value.ok) return value;
    changes[key] = value.value;
    return parsed(undefined);
  };
  switch (node.name) {
    case "Logging":
      return service === "file" ? rejected("UnsupportedXmlNode", { XmlNodeName: node.name }) : into("logging", loggingOf(node));
    case "HourMetrics":
      return into("hourMetrics", metricsOf(node));
    case "MinuteMetrics":
      return into("minuteMetrics", metricsOf(node));
    case "Cors":
      return into("cors", corsOf(node));
  }
  if (service === "file" && node.name === "ProtocolSettings") return notImplemented("Settings of SMB (ProtocolSettings)");
  if (service !== "blob") return rejected("UnsupportedXmlNode", { XmlNodeName: node.name });
  switch (node.name) {
    case "DefaultServiceVersion": {
      const version = trimXml(node.text);
      if (!isVersion(version)) return badNode("DefaultServiceVersion", version);
      changes.defaultServiceVersion = version;
      return parsed(undefined);
    }
    case "DeleteRetentionPolicy": {
      const policy = retentionOf(node);
      if (!policy.ok) return policy;
      const permanent = booleanIn(node, "AllowPermanentDelete", false);
      if (!permanent.ok) return permanent;
      changes.deleteRetention = { ...policy.value, allowPermanentDelete: permanent.value };
      return parsed(undefined);
    }
    case "StaticWebsite":
      return into("staticWebsite", staticWebsiteOf(node));
    default:
      return rejected("UnsupportedXmlNode", { XmlNodeName: node.name });
  }
}

/** Reads a boolean element. Refuses if the element is missing, unless `absent` gives its value. */
function booleanIn(node: XmlElement, name: string, absent?: boolean): Parsed<boolean> {
  const text = childText(node, name);
  if (text === undefined) return absent === undefined ? missingNode(name) : parsed(absent);
  if (text === "true" || text === "false") return parsed(text === "true");
  return badNode(name, text);
}

function retentionOf(node: XmlElement): Parsed<RetentionPolicy> {
  const enabled = booleanIn(node, "Enabled");
  if (!enabled.ok) return enabled;
  const text = childText(node, "Days");
  if (!enabled.value) return parsed({ enabled: false });
  if (text === undefined) return missingNode("Days");
  const days = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  return days >= 1 && days <= retentionDaysMax ? parsed({ enabled: true, days }) : badNode("Days", text);
}

function retentionIn(node: XmlElement): Parsed<RetentionPolicy> {
  const policy = childOf(node, "RetentionPolicy");
  return policy ? retentionOf(policy) : missingNode("RetentionPolicy");
}

function versionIn(node: XmlElement): Parsed<string> {
  const version = childText(node, "Version");
  if (version === undefined) return missingNode("Version");
  return /^[12]\.0$/.test(version) ? parsed(version) : badNode("Version", version);
}

function loggingOf(node: XmlElement): Parsed<Logging> {
  const version = versionIn(node);
  if (!version.ok) return version;
  const flags: Record<"Delete" | "Read" | "Write", boolean> = { Delete: false, Read: false, Write: false };
  for (const name of ["Delete", "Read", "Write"] as const) {
    const flag = booleanIn(node, name);
    if (!flag.ok) return flag;
    flags[name] = flag.value;
  }
  const retention = retentionIn(node);
  if (!retention.ok) return retention;
  return parsed({ version: version.value, delete: flags.Delete, read: flags.Read, write: flags.Write, retention: retention.value });
}

function metricsOf(node: XmlElement): Parsed<Metrics> {
  const version = versionIn(node);
  if (!version.ok) return version;
  const enabled = booleanIn(node, "Enabled");
  if (!enabled.ok) return enabled;
  const includeApis = booleanIn(node, "IncludeAPIs", enabled.value ? undefined : false);
  if (!includeApis.ok) return includeApis;
  const retention = retentionIn(node);
  if (!retention.ok) return retention;
  const common = { version: version.value, enabled: enabled.value, retention: retention.value };
  return parsed(enabled.value ? { ...common, includeApis: includeApis.value } : common);
}

function corsOf(node: XmlElement): Parsed<CorsRule[]> {
  if (node.children.length > corsRulesMax) return badNode("Cors", `${node.children.length} rules`);
  const rules: CorsRule[] = [];
  for (const child of node.children) {
    if (child.name !== "CorsRule") return rejected("UnsupportedXmlNode", { XmlNodeName: child.name });
    const rule = corsRuleOf(child);
    if (!rule.ok) return rule;
    rules.push(rule.value);
  }
  return JSON.stringify(rules).length > corsCharactersMax ? badNode("Cors", "longer than 2 KiB") : parsed(rules);
}

function corsRuleOf(node: XmlElement): Parsed<CorsRule> {
  const lists: Record<"AllowedOrigins" | "AllowedMethods" | "AllowedHeaders" | "ExposedHeaders", string[]> = {
    AllowedOrigins: [],
    AllowedMethods: [],
    AllowedHeaders: [],
    ExposedHeaders: [],
  };
  for (const name of ["AllowedOrigins", "AllowedMethods", "AllowedHeaders", "ExposedHeaders"] as const) {
    const text = childText(node, name);
    if (text === undefined) return missingNode(name);
    const values = text
      .split(",")
      .map((value) => trimXml(value))
      .filter((value) => value !== "");
    const needed = name === "AllowedOrigins" || name === "AllowedMethods";
    if (needed && values.length === 0) return badNode(name, text);
    if (values.some((value) => value.length > corsValueCharactersMax || !/^[\x20-\x7e]+$/.test(value))) return badNode(name, text);
    lists[name] = values;
  }
  if (lists.AllowedMethods.some((method) => !corsMethods.has(method))) return badNode("AllowedMethods", lists.AllowedMethods.join(","));
  const age = childText(node, "MaxAgeInSeconds");
  if (age === undefined) return missingNode("MaxAgeInSeconds");
  if (!/^\d{1,9}$/.test(age)) return badNode("MaxAgeInSeconds", age);
  return parsed({
    allowedOrigins: lists.AllowedOrigins,
    allowedMethods: lists.AllowedMethods,
    allowedHeaders: lists.AllowedHeaders,
    exposedHeaders: lists.ExposedHeaders,
    maxAgeSeconds: Number(age),
  });
}

function staticWebsiteOf(node: XmlElement): Parsed<StaticWebsite> {
  const enabled = booleanIn(node, "Enabled");
  if (!enabled.ok) return enabled;
  const known = ["Enabled", "IndexDocument", "ErrorDocument404Path", "DefaultIndexDocumentPath"];
  const other = node.children.find((child) => !known.includes(child.name));
  if (other) return rejected("UnsupportedXmlNode", { XmlNodeName: other.name });
  const website: { -readonly [K in keyof StaticWebsite]: StaticWebsite[K] } = { enabled: enabled.value };
  if (!enabled.value) return parsed(website);
  const index = childText(node, "IndexDocument") ?? "";
  const error = childText(node, "ErrorDocument404Path") ?? "";
  const path = childText(node, "DefaultIndexDocumentPath") ?? "";
  if (index !== "" && path !== "") return badNode("DefaultIndexDocumentPath", path);
  if (index.length > 255 || index.includes("/")) return badNode("IndexDocument", index);
  if (error.length > 255 || error.startsWith("/")) return badNode("ErrorDocument404Path", error);
  if (path.length > 255 || path.startsWith("/")) return badNode("DefaultIndexDocumentPath", path);
  if (index !== "") website.indexDocument = index;
  if (error !== "") website.errorDocument404Path = error;
  if (path !== "") website.defaultIndexDocumentPath = path;
  return parsed(website);
}

const flag = (name: string, value: boolean): string => element(name, String(value));

const retentionXml = (name: string, policy: RetentionPolicy, more = ""): string =>
  `<${name}>${flag("Enabled", policy.enabled)}${policy.days === undefined ? "" : element("Days", String(policy.days))}${more}</${name}>`;

const metricsXml = (name: string, { version, enabled, includeApis, retention }: Metrics): string =>
  `<${name}>${element("Version", version)}${flag("Enabled", enabled)}${includeApis === undefined ? "" : flag("IncludeAPIs", includeApis)}` +
  `${retentionXml("RetentionPolicy", retention)}</${name}>`;

const corsRuleXml = (rule: CorsRule): string =>
  `<CorsRule>${element("AllowedMethods", rule.allowedMethods.join(","))}${element("AllowedOrigins", rule.allowedOrigins.join(","))}` +
  `${element("AllowedHeaders", rule.allowedHeaders.join(","))}${element("ExposedHeaders", rule.exposedHeaders.join(","))}` +
  `${element("MaxAgeInSeconds", String(rule.maxAgeSeconds))}</CorsRule>`;

export function servicePropertiesXml(properties: ServiceProperties, service: ServiceName, version: string): string {
  const { logging, hourMetrics, minuteMetrics, cors, deleteRetention, staticWebsite } = properties;
  const logs =
    `<Logging>${element("Version", logging.version)}${flag("Read", logging.read)}${flag("Write", logging.write)}` +
    `${flag("Delete", logging.delete)}${retentionXml("RetentionPolicy", logging.retention)}</Logging>`;
  let text =
    `<?xml version="1.0" encoding="utf-8"?><StorageServiceProperties>${service === "file" ? "" : logs}` +
    `${metricsXml("HourMetrics", hourMetrics)}${metricsXml("MinuteMetrics", minuteMetrics)}`;
  text += cors.length === 0 ? "<Cors />" : `<Cors>${cors.map(corsRuleXml).join("")}</Cors>`;
  if (service === "blob") {
    if (properties.defaultServiceVersion !== undefined) text += element("DefaultServiceVersion", properties.defaultServiceVersion);
    if (behavesAs(version, "deleteRetentionPolicy")) {
      const permanent = behavesAs(version, "permanentDelete")
        ? flag("AllowPermanentDelete", deleteRetention.allowPermanentDelete ?? false)
        : "";
      text += retentionXml("DeleteRetentionPolicy", deleteRetention, permanent);
    }
    if (behavesAs(version, "staticWebsite")) {
      text += `<StaticWebsite>${flag("Enabled", staticWebsite.enabled)}`;
      if (staticWebsite.indexDocument !== undefined) text += element("IndexDocument", staticWebsite.indexDocument);
      if (staticWebsite.defaultIndexDocumentPath !== undefined) {
        text += element("DefaultIndexDocumentPath", staticWebsite.defaultIndexDocumentPath);
      }
      if (staticWebsite.errorDocument404Path !== undefined) text += element("ErrorDocument404Path", staticWebsite.errorDocument404Path);
      text += "</StaticWebsite>";
    }
  }
  return `${text}</StorageServiceProperties>`;
}
