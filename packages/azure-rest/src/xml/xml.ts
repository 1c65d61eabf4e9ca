/**
 * XML bodies as trees of elements: for small documents. Bounds on size, depth and number of elements; whatever is not well-formed is
 * InvalidXmlDocument (xml-reader.ts), and so is an element with text beside elements, or one that stands twice: no body of the service
 * has it. Text keeps its white space.
 */
import { type Parsed, parsed, type RestError, rejected, restError } from "../rest-error.ts";
import { type XmlEvents, XmlReader } from "./xml-reader.ts";
import { trimXml } from "./xml-text.ts";

export const xmlDepthMax = 16;
export const xmlElementsMax = 10_000;

/** Elements of lists. Every other element stands once in its parent: of two, one would be dropped unseen. */
const listed: ReadonlySet<string> = new Set(["SignedIdentifier", "CorsRule", "Tag", "PageRange", "ClearRange"]);

export interface XmlElement {
  /** Name of the element, with its prefix if it has one. */
  readonly name: string;
  readonly children: readonly XmlElement[];
  /** Text of the element itself, not of its children. */
  readonly text: string;
}

export function parseXml(body: Uint8Array, bytesMax: number): Parsed<XmlElement> {
  if (body.length > bytesMax) return rejected("RequestBodyTooLarge", { MaxLimit: String(bytesMax) });
  const reader = new XmlTreeReader();
  const error = reader.push(body);
  return error === undefined ? reader.end() : { ok: false, error };
}

/** Makes a tree of XML that arrives piece by piece. */
export class XmlTreeReader {
  readonly #tree = new Tree();
  readonly #reader = new XmlReader(this.#tree);

  /** Returns the error that ends the parse; undefined: go on. After an error the reader must not be used again. */
  push(bytes: Uint8Array): RestError | undefined {
    try {
      this.#reader.push(bytes);
      return undefined;
    } catch {
      return restError("InvalidXmlDocument");
    }
  }

  end(): Parsed<XmlElement> {
    try {
      this.#reader.end();
    } catch {
      return rejected("InvalidXmlDocument");
    }
    return this.#tree.root === undefined ? rejected("InvalidXmlDocument") : parsed(this.#tree.root);
  }
}

interface OpenElement extends XmlElement {
  readonly children: XmlElement[];
  /** Names of the children that stand once. */
  readonly names: Set<string>;
  text: string;
}

class Tree implements XmlEvents {
  readonly #open: OpenElement[] = [];
  #elements = 0;
  root: XmlElement | undefined;

  open(name: string): void {
    if (this.#open.length === xmlDepthMax || ++this.#elements > xmlElementsMax) throw new Error("too deep, or too many elements");
    const [children, names] = [[], new Set<string>()];
    const parent = this.#open.at(-1);
    if (parent?.names.has(name)) throw new Error("an element for the second time");
    if (!listed.has(name)) parent?.names.add(name);
    this.#open.push({ name, children, names, text: "" });
  }

  text(text: string): void {
    const element = this.#open.at(-1);
    if (element !== undefined) element.text += text;
  }

  close(): void {
    const closed = this.#open.pop();
    if (closed === undefined) return;
    const { name, children, text } = closed;
    if (children.length > 0 && trimXml(text) !== "") throw new Error("text beside elements");
    const element: XmlElement = { name, children, text };
    const parent = this.#open.at(-1);
    if (parent === undefined) this.root = element;
    else parent.children.push(element);
  }
}

/** Returns the child of that name, which is no element of a list; undefined if there is none. */
export const childOf = (element: XmlElement, name: string): XmlElement | undefined => element.children.find((child) => child.name === name);

/** Returns the text of a child without the white space around it; undefined when the child is not there. */
export const childText = (element: XmlElement, name: string): string | undefined => {
  const child = childOf(element, name);
  return child && trimXml(child.text);
};

export const badNode = (name: string, value: string): { readonly ok: false; readonly error: import("../rest-error.ts").RestError } =>
  rejected("InvalidXmlNodeValue", { XmlNodeName: name, XmlNodeValue: value });

export const missingNode = (name: string): { readonly ok: false; readonly error: import("../rest-error.ts").RestError } =>
  rejected("MissingRequiredXmlNode", { XmlNodeName: name });
