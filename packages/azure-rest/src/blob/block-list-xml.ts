/**
 * The body of Put Block List: block ids in the order in which they make the blob, each with where to take the block from. No entities, no
 * document type, a bound on the size; anything else than a list of ids is refused.
 */
import { XMLParser, XMLValidator } from "fast-xml-parser";
import { fromBase64 } from "../base64.ts";
import { type Parsed, parsed, rejected } from "../rest-error.ts";
import { decodeUtf8 } from "../target.ts";

/** Of 50,000 blocks with ids of 64 bytes, and some white space. */
export const blockListBytesMax: number = 8 * 1024 * 1024;
export const blockListBlocksMax = 50_000;

export interface BlockListItem {
  readonly blockId: Uint8Array;
  readonly source: "committed" | "uncommitted" | "latest";
}

const sources: Readonly<Record<string, BlockListItem["source"]>> = { Committed: "committed", Uncommitted: "uncommitted", Latest: "latest" };

const parser = new XMLParser({
  preserveOrder: true,
  ignoreAttributes: true,
  ignoreDeclaration: true,
  ignorePiTags: true,
  parseTagValue: false,
  processEntities: false,
  trimValues: true,
});

type Node = Readonly<Record<string, unknown>>;

export function parseBlockList(body: Uint8Array): Parsed<BlockListItem[]> {
  if (body.length > blockListBytesMax) return rejected("RequestBodyTooLarge", { MaxLimit: String(blockListBytesMax) });
  const text = decodeUtf8(body);
  if (text === undefined || /<!(DOCTYPE|ENTITY)/i.test(text)) return rejected("InvalidXmlDocument");
  let root: readonly Node[];
  try {
    if (XMLValidator.validate(text) !== true) return rejected("InvalidXmlDocument");
    root = parser.parse(text) as readonly Node[];
  } catch {
    return rejected("InvalidXmlDocument");
  }
  const list = root.length === 1 ? root[0]?.BlockList : undefined;
  return Array.isArray(list) ? itemsOf(list as readonly Node[]) : rejected("InvalidXmlDocument");
}

function itemsOf(nodes: readonly Node[]): Parsed<BlockListItem[]> {
  if (nodes.length > blockListBlocksMax) return rejected("BlockListTooLong");
  const items: BlockListItem[] = [];
  for (const node of nodes) {
    const name = Object.keys(node)[0] ?? "";
    const source = Object.hasOwn(sources, name) ? sources[name] : undefined;
    if (source === undefined) return rejected("UnsupportedXmlNode", { XmlNodeName: name });
    const children = node[name] as readonly Node[];
    const id = children.length === 1 ? children[0]?.["#text"] : undefined;
    const blockId = typeof id === "string" ? fromBase64(id) : undefined;
    if (!blockId || blockId.length === 0 || blockId.length > 64) {
      return rejected("InvalidXmlNodeValue", { XmlNodeName: name, XmlNodeValue: typeof id === "string" ? id : "" });
    }
    items.push({ blockId, source });
  }
  return parsed(items);
}
