/** Tags of blobs, as headers and as XML, and the answer to Find Blobs by Tags. */
import { isTagKey, isTagValue } from "@stamp/base";
import { badHeader, type Parsed, parsed, rejected } from "../rest-error.ts";
import { badNode, childOf, missingNode, parseXml } from "../xml/xml.ts";
import { element, escapeXml, named } from "../xml/xml-text.ts";
import { type Tags, tagSetXml } from "./lists-xml.ts";

export const tagsMax = 10;
export const tagsBytesMax: number = 64 * 1024;

/** Parses `x-ms-tags`, which is a query string. */
export function parseTagsHeader(text: string | undefined): Parsed<Tags> {
  const tags: Record<string, string> = {};
  if (text === undefined || text === "") return parsed(tags);
  const parts = text.split("&");
  if (parts.length > tagsMax) return rejected("TagsTooLarge", { HeaderName: "x-ms-tags" });
  for (const part of parts) {
    const at = part.indexOf("=");
    const key = at < 0 ? undefined : decoded(part.slice(0, at));
    const value = at < 0 ? undefined : decoded(part.slice(at + 1));
    if (key === undefined || value === undefined || !isTagKey(key) || !isTagValue(value) || Object.hasOwn(tags, key)) {
      return badHeader("x-ms-tags", text);
    }
    tags[key] = value;
  }
  return parsed(tags);
}

/** Decodes like a form: a plus sign is a space. */
function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    return undefined;
  }
}

export function parseTagsXml(body: Uint8Array): Parsed<Tags> {
  const root = parseXml(body, tagsBytesMax);
  if (!root.ok) return root;
  const set = root.value.name === "Tags" ? childOf(root.value, "TagSet") : undefined;
  if (!set) return missingNode("TagSet");
  if (set.children.length > tagsMax) return rejected("TagsTooLarge");
  const tags: Record<string, string> = {};
  for (const tag of set.children) {
    const key = childOf(tag, "Key")?.text;
    const value = childOf(tag, "Value")?.text ?? "";
    if (tag.name !== "Tag" || key === undefined) return missingNode("Key");
    if (!isTagKey(key) || Object.hasOwn(tags, key)) return badNode("Key", key);
    if (!isTagValue(value)) return badNode("Value", value);
    tags[key] = value;
  }
  return parsed(tags);
}

const declaration = '<?xml version="1.0" encoding="utf-8"?>';

export const tagsXml = (tags: Tags): string => declaration + tagSetXml(tags);

export interface FoundByTags {
  readonly name: string;
  readonly container: string;
  readonly tags: Tags;
}

export function foundByTagsXml(serviceEndpoint: string, where: string, blobs: readonly FoundByTags[], nextMarker: string): string {
  let text = `${declaration}<EnumerationResults ServiceEndpoint="${escapeXml(serviceEndpoint)}">${element("Where", where)}<Blobs>`;
  for (const { name, container, tags } of blobs) {
    text += `<Blob>${named("Name", name)}${element("ContainerName", container)}${tagSetXml(tags)}</Blob>`;
  }
  return `${text}</Blobs>${nextMarker === "" ? "<NextMarker />" : element("NextMarker", nextMarker)}</EnumerationResults>`;
}
