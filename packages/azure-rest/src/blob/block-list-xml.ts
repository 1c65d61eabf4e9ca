/**
 * The body of Put Block List: block ids in the order in which they make the blob, each with where to take the block from. Read piece by
 * piece, so that a long list holds nobody up; the first thing that is wrong ends it, so that a list of a million ids costs as much as one of
 * 50,001.
 */
import { fromBase64 } from "../base64.ts";
import type { ErrorCode } from "../error-codes.ts";
import { type Parsed, parsed, type RestError, restError } from "../rest-error.ts";
import { type XmlEvents, XmlReader } from "../xml/xml-reader.ts";
import { trimXml } from "../xml/xml-text.ts";

/** Size of 50,000 blocks with ids of 64 bytes, and some white space. */
export const blockListBytesMax: number = 8 * 1024 * 1024;
export const blockListBlocksMax = 50_000;
/** Length of the base64 text of 64 bytes. */
const idCharactersMax = 88;
/** Characters of a wrong value that the error shows. */
const shownCharactersMax = 1_024;

export interface BlockListItem {
  readonly blockId: Uint8Array;
  readonly source: "committed" | "uncommitted" | "latest";
}

const sources: Readonly<Record<string, BlockListItem["source"]>> = { Committed: "committed", Uncommitted: "uncommitted", Latest: "latest" };

export class BlockListReader {
  readonly #list = new List();
  readonly #reader = new XmlReader(this.#list);
  #receivedBytes = 0;

  /** Returns the error that ends the parse; undefined: go on. After an error the reader must not be used again. */
  push(bytes: Uint8Array): RestError | undefined {
    this.#receivedBytes += bytes.length;
    if (this.#receivedBytes > blockListBytesMax) return restError("RequestBodyTooLarge", { MaxLimit: String(blockListBytesMax) });
    return this.#errorOf(() => this.#reader.push(bytes));
  }

  end(): Parsed<BlockListItem[]> {
    const error = this.#errorOf(() => this.#reader.end());
    return error === undefined ? parsed(this.#list.items) : { ok: false, error };
  }

  #errorOf(step: () => void): RestError | undefined {
    try {
      step();
      return undefined;
    } catch (thrown) {
      return thrown instanceof Refusal ? thrown.error : restError("InvalidXmlDocument");
    }
  }
}

/** Parses a whole block list at once; for small ones. */
export function parseBlockList(body: Uint8Array): Parsed<BlockListItem[]> {
  const reader = new BlockListReader();
  const error = reader.push(body);
  return error === undefined ? reader.end() : { ok: false, error };
}

class Refusal extends Error {
  readonly error: RestError;

  constructor(code: ErrorCode, fields: Readonly<Record<string, string>> = {}) {
    super(code);
    this.error = restError(code, fields);
  }
}

class List implements XmlEvents {
  readonly items: BlockListItem[] = [];
  #depth = 0;
  #name = "";
  #source: BlockListItem["source"] = "latest";
  #id = "";

  open(name: string): void {
    this.#depth++;
    if (this.#depth === 1) {
      if (name !== "BlockList") throw new Refusal("InvalidXmlDocument");
      return;
    }
    // Something inside of an id.
    if (this.#depth > 2) throw this.#badId();
    const source = Object.hasOwn(sources, name) ? sources[name] : undefined;
    if (source === undefined) throw new Refusal("UnsupportedXmlNode", { XmlNodeName: name.slice(0, shownCharactersMax) });
    if (this.items.length === blockListBlocksMax) throw new Refusal("BlockListTooLong");
    [this.#name, this.#source, this.#id] = [name, source, ""];
  }

  text(text: string): void {
    if (this.#depth === 2) this.#id += text;
    else if (this.#depth === 1 && trimXml(text) !== "") throw new Refusal("UnsupportedXmlNode", { XmlNodeName: "#text" });
  }

  close(): void {
    if (this.#depth-- !== 2) return;
    const id = trimXml(this.#id);
    const blockId = id.length <= idCharactersMax ? fromBase64(id) : undefined;
    if (!blockId || blockId.length === 0 || blockId.length > 64) throw this.#badId();
    this.items.push({ blockId, source: this.#source });
  }

  #badId(): Refusal {
    return new Refusal("InvalidXmlNodeValue", { XmlNodeName: this.#name, XmlNodeValue: trimXml(this.#id).slice(0, shownCharactersMax) });
  }
}
