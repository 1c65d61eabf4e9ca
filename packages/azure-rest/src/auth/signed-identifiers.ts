/**
 * Stored access policies of a container, queue or table ("Set Container ACL", "Set Queue ACL", "Set Table ACL"): the XML of both ways,
 * and how they go together with a SAS that names one.
 */
import { formatIso, parseIso } from "../dates.ts";
import { type Parsed, parsed, rejected } from "../rest-error.ts";
import type { ServiceName } from "../service-properties/service-properties.ts";
import { badNode, childOf, childText, missingNode, parseXml, type XmlElement } from "../xml/xml.ts";
import { element } from "../xml/xml-text.ts";
import type { Sas } from "./sas.ts";

/** Stored access policy of a container, queue or table. What is undefined, the SAS has to say. */
export interface SignedIdentifier {
  readonly id: string;
  readonly startMs?: number | undefined;
  readonly expiryMs?: number | undefined;
  readonly permissions?: string | undefined;
}

export const signedIdentifiersMax = 5;
export const signedIdentifierCharactersMax = 64;
const bodyBytesMax = 64 * 1024;

const letters: Readonly<Record<ServiceName, string>> = { blob: "rwdlacxyupftmeoi", queue: "raup", table: "raud", file: "rcwdl" };

/** Parses a list of policies. An empty body is an empty list. */
export function parseSignedIdentifiers(body: Uint8Array, service: ServiceName): Parsed<SignedIdentifier[]> {
  if (body.length === 0) return parsed([]);
  const root = parseXml(body, bodyBytesMax);
  if (!root.ok) return root;
  if (root.value.name !== "SignedIdentifiers") return rejected("InvalidXmlDocument");
  if (root.value.children.length > signedIdentifiersMax) {
    return rejected("InvalidXmlDocument", {}, { message: `More than ${signedIdentifiersMax} stored access policies.` });
  }
  const identifiers: SignedIdentifier[] = [];
  for (const child of root.value.children) {
    const one = identifierOf(child, service);
    if (!one.ok) return one;
    if (identifiers.some((other) => other.id === one.value.id)) return badNode("Id", one.value.id);
    identifiers.push(one.value);
  }
  return parsed(identifiers);
}

function identifierOf(node: XmlElement, service: ServiceName): Parsed<SignedIdentifier> {
  if (node.name !== "SignedIdentifier") return rejected("UnsupportedXmlNode", { XmlNodeName: node.name });
  const id = childOf(node, "Id")?.text;
  if (id === undefined || id === "") return missingNode("Id");
  if (id.length > signedIdentifierCharactersMax) return badNode("Id", id);
  const policy = childOf(node, "AccessPolicy");
  if (!policy) return parsed({ id });
  const start = timeIn(policy, "Start");
  if (!start.ok) return start;
  const expiry = timeIn(policy, "Expiry");
  if (!expiry.ok) return expiry;
  const permissions = childText(policy, "Permission") ?? "";
  if ([...permissions].some((letter) => !letters[service].includes(letter))) return badNode("Permission", permissions);
  return parsed({ id, startMs: start.value, expiryMs: expiry.value, permissions: permissions === "" ? undefined : permissions });
}

function timeIn(policy: XmlElement, name: "Start" | "Expiry"): Parsed<number | undefined> {
  const text = childText(policy, name) ?? "";
  if (text === "") return parsed(undefined);
  const ms = parseIso(text);
  return ms === undefined ? badNode(name, text) : parsed(ms);
}

export function signedIdentifiersXml(identifiers: readonly SignedIdentifier[]): string {
  let text = '<?xml version="1.0" encoding="utf-8"?><SignedIdentifiers>';
  for (const { id, startMs, expiryMs, permissions } of identifiers) {
    text += `<SignedIdentifier>${element("Id", id)}`;
    if (startMs !== undefined || expiryMs !== undefined || permissions !== undefined) {
      text += "<AccessPolicy>";
      if (startMs !== undefined) text += element("Start", formatIso(startMs));
      if (expiryMs !== undefined) text += element("Expiry", formatIso(expiryMs));
      if (permissions !== undefined) text += element("Permission", permissions);
      text += "</AccessPolicy>";
    }
    text += "</SignedIdentifier>";
  }
  return `${text}</SignedIdentifiers>`;
}

/** Permissions and times that a SAS or its stored policy grants. */
export interface SasTerms {
  readonly permissions: string;
  readonly startMs: number | undefined;
  readonly expiryMs: number;
}

const refused = (detail: string): { readonly ok: false; readonly error: import("../rest-error.ts").RestError } =>
  rejected("AuthenticationFailed", { AuthenticationErrorDetail: detail });

/** Returns the terms of a SAS. Each comes from the SAS or its policy, never from both; permissions and end must come from one. */
export function termsOf(sas: Sas, policies: readonly SignedIdentifier[]): Parsed<SasTerms> {
  const policy = sas.identifier === "" ? undefined : policies.find((one) => one.id === sas.identifier);
  if (sas.identifier !== "" && !policy) return refused("SAS identifier cannot be found for specified signed identifier");
  for (const field of ["permissions", "startMs", "expiryMs"] as const) {
    if (sas[field] !== undefined && policy?.[field] !== undefined) {
      return refused("Access policy fields can be associated with signature or SAS identifier but not both");
    }
  }
  const permissions = sas.permissions ?? policy?.permissions;
  const expiryMs = sas.expiryMs ?? policy?.expiryMs;
  if (permissions === undefined) return refused("sp is mandatory. Cannot be empty");
  if (expiryMs === undefined) return refused("se is mandatory. Cannot be empty");
  return parsed({ permissions, startMs: sas.startMs ?? policy?.startMs, expiryMs });
}
