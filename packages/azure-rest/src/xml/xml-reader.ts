/**
 * XML 1.0, read piece by piece: bytes in, elements and text out. Every XML body goes through this reader: small ones as trees (xml.ts), block
 * lists as they come (blob/block-list-xml.ts). The parser is saxes.
 *
 * - What is not well-formed, not in an encoding that the reader knows (xml-encoding.ts), or has a document type is refused. So there are
 *   no entities but the five of XML.
 * - References are decoded once, CDATA sections are text as it stands, line ends are LF. Comments and processing instructions are dropped.
 * - An event that throws ends the reading: nothing behind it is looked at.
 * - One token (a text, a comment, a tag) has at most `xmlTokenBytesMax` bytes, a tag at most `xmlAttributesMax` attributes: the parser keeps a
 *   token until it is whole, and what it does then is done in one turn.
 */
import { SaxesParser } from "saxes";
import { XmlDecoder } from "./xml-encoding.ts";

/** Longest token, in bytes: above the largest text that any body may have, a queue message of 64 KiB whose bytes are all references. */
export const xmlTokenBytesMax: number = 512 * 1024;
export const xmlAttributesMax = 256;

export interface XmlEvents {
  /** Takes a start tag, with the prefix of its name. Attributes are checked and dropped. */
  open(name: string): void;
  /** Takes a part of the text of the element that is open. */
  text(text: string): void;
  close(): void;
}

export class XmlReader {
  readonly #decoder = new XmlDecoder();
  readonly #parser: SaxesParser;
  /** Length in bytes of the unfinished token, without the piece in which it began. */
  #tokenBytes = 0;
  #tokens = 0;
  #attributes = 0;

  constructor(events: XmlEvents) {
    this.#parser = new SaxesParser({ position: false, defaultXMLVersion: "1.0", forceXMLVersion: true });
    const text = (piece: string): void => {
      this.#tokens++;
      events.text(piece);
    };
    const dropped = (): void => {
      this.#tokens++;
    };
    this.#parser.on("opentagstart", (tag) => {
      this.#tokens++;
      this.#attributes = 0;
      events.open(tag.name);
    });
    this.#parser.on("attribute", () => {
      this.#tokens++;
      if (++this.#attributes > xmlAttributesMax) throw new Error("too many attributes");
    });
    this.#parser.on("closetag", () => {
      this.#tokens++;
      events.close();
    });
    this.#parser.on("text", text);
    this.#parser.on("cdata", text);
    this.#parser.on("comment", dropped);
    this.#parser.on("processinginstruction", dropped);
    this.#parser.on("xmldecl", ({ encoding }) => {
      if (encoding !== undefined) this.#decoder.declare(encoding);
    });
    this.#parser.on("doctype", () => {
      throw new Error("a document type");
    });
  }

  /** Throws what is wrong, or what an event threw; then the reader is of no use any more. */
  push(bytes: Uint8Array): void {
    const before = this.#tokens;
    this.#parser.write(this.#decoder.push(bytes));
    this.#decoder.check();
    this.#tokenBytes = this.#tokens === before ? this.#tokenBytes + bytes.length : 0;
    if (this.#tokenBytes > xmlTokenBytesMax) throw new Error("too long a token");
  }

  /** Throws when the document is not whole. */
  end(): void {
    this.#parser.write(this.#decoder.end());
    this.#decoder.check();
    this.#parser.close();
  }
}
