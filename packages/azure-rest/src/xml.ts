/**
 * XML bodies as trees of elements. No document type, no entities but the five of XML and character references, bounds on size, depth and
 * number of elements; whatever is not well-formed is InvalidXmlDocument. Text keeps its white space. For large flat documents (block
 * lists) there is a parser of its own.
 */
import { XMLParser, XMLValidator } from "fast-xml-parser";
import { type Parsed, parsed, rejected } from "./rest-error.ts";
import { decodeUtf8 } from "./target.ts";
import { needsEncoding } from "./xml-text.ts";

export const xmlDepthMax = 16;
export const xmlElementsMax = 10_000;

export interface XmlElement {
  /** With its prefix, if it has one. */
  readonly name: string;
  readonly children: readonly XmlElement[];
  /** Of the element itself, not of its children. */
  readonly text: string;
}

type Node = Readonly<Record<string, unknown>>;

const parser = new XMLParser({
  preserveOrder: true,
  ignoreAttributes: true,
  ignoreDeclaration: true,
  ignorePiTags: true,
  parseTagValue: false,
  processEntities: false,
  trimValues: false,
});

export function parseXml(body: Uint8Array, bytesMax: number): Parsed<XmlElement> {
  if (body.length > bytesMax) return rejected("RequestBodyTooLarge", { MaxLimit: String(bytesMax) });
  const text = decodeUtf8(body)?.replace(/^\ufeff/, "");
  if (text === undefined || text.trim() === "" || needsEncoding(text) || /<!(DOCTYPE|ENTITY)/i.test(text))
    return rejected("InvalidXmlDocument");
  try {
    if (XMLValidator.validate(text) !== true) return rejected("InvalidXmlDocument");
    const roots = (parser.parse(text) as readonly Node[]).filter((node) => !("#text" in node));
    const only = roots.length === 1 ? treeOf(roots[0] as Node, 1, { left: xmlElementsMax }) : undefined;
    return only ? parsed(only) : rejected("InvalidXmlDocument");
  } catch {
    return rejected("InvalidXmlDocument");
  }
}

function treeOf(node: Node, depth: number, budget: { left: number }): XmlElement | undefined {
  if (depth > xmlDepthMax || --budget.left < 0) return undefined;
  const name = Object.keys(node).find((key) => key !== ":@") ?? "";
  const children: XmlElement[] = [];
  let text = "";
  for (const child of node[name] as readonly Node[]) {
    if ("#text" in child) {
      const piece = decodeEntities(String(child["#text"]));
      if (piece === undefined) return undefined;
      text += piece;
      continue;
    }
    const element = treeOf(child, depth + 1, budget);
    if (!element) return undefined;
    children.push(element);
  }
  return { name, children, text };
}

const entities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

/** Undefined for an entity that XML does not have, and for a reference to what is no character. */
function decodeEntities(text: string): string | undefined {
  if (!text.includes("&")) return text;
  let known = true;
  const decoded = text.replace(/&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|(\w+));|&/gi, (_all, hex: string, decimal: string, name: string) => {
    const code = hex !== undefined ? Number.parseInt(hex, 16) : decimal !== undefined ? Number(decimal) : undefined;
    const character =
      code !== undefined && code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff) ? String.fromCodePoint(code) : undefined;
    if (character !== undefined && !needsEncoding(character)) return character;
    if (name !== undefined && Object.hasOwn(entities, name)) return entities[name] as string;
    known = false;
    return "";
  });
  return known ? decoded : undefined;
}

/** The child of that name; undefined when there is none, or more than one. */
export function childOf(element: XmlElement, name: string): XmlElement | undefined {
  const found = element.children.filter((child) => child.name === name);
  return found.length === 1 ? found[0] : undefined;
}

/** The text of a child without the white space around it; undefined when the child is not there. */
export const childText = (element: XmlElement, name: string): string | undefined => childOf(element, name)?.text.trim();

export const badNode = (name: string, value: string): { readonly ok: false; readonly error: import("./rest-error.ts").RestError } =>
  rejected("InvalidXmlNodeValue", { XmlNodeName: name, XmlNodeValue: value });

export const missingNode = (name: string): { readonly ok: false; readonly error: import("./rest-error.ts").RestError } =>
  rejected("MissingRequiredXmlNode", { XmlNodeName: name });
