/**
 * The encoding of an XML document: bytes in, characters out, piece by piece, for the reader (xml-reader.ts).
 *
 * - A document is UTF-16 if it begins with a byte order mark of UTF-16, and UTF-8 otherwise. The mark is no part of the text.
 * - A declaration that names another encoding is an error, as XML 1.0 says (4.3.3): the text would be read wrongly.
 * - A declaration may name an encoding that extends ASCII, while every character is ASCII: the bytes are the same.
 */
type Encoding = "utf-8" | "utf-16le" | "utf-16be";

/** Names, in lower case, that a declaration in that encoding may have. "utf8" is what Python's ElementTree writes for UTF-8. */
const declared: Readonly<Record<Encoding, RegExp>> = {
  "utf-8": /^utf-?8$/,
  "utf-16le": /^(utf-16|utf-16le|iso-10646-ucs-2)$/,
  "utf-16be": /^(utf-16|utf-16be|iso-10646-ucs-2)$/,
};
const extendsAscii = /^(us-ascii|ascii|iso-8859-\d{1,2}|latin1|windows-125\d)$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: the first characters of ASCII are controls.
const beyondAscii = /[^\u0000-\u007f]/;

export class XmlDecoder {
  #encoding: Encoding | undefined;
  #decoder: TextDecoder | undefined;
  /** First byte of the text while it is the only one: it may begin a byte-order mark. */
  #first: number | undefined;
  #asciiDeclared = false;
  #beyondAscii = false;

  /** Returns the characters that are whole. Throws on bytes that the encoding does not have. */
  push(bytes: Uint8Array): string {
    if (this.#decoder !== undefined) return this.#seen(this.#decoder.decode(bytes, { stream: true }));
    const start = this.#first === undefined ? bytes : Uint8Array.of(this.#first, ...bytes);
    if (start.length >= 2) return this.#begin(start);
    this.#first = start[0];
    return "";
  }

  /** Returns the rest. Throws if a character is not whole. */
  end(): string {
    const rest = this.#decoder === undefined ? this.#begin(Uint8Array.of(...(this.#first === undefined ? [] : [this.#first]))) : "";
    return rest + (this.#decoder?.decode() ?? "");
  }

  /** Takes the encoding that the document's declaration names. Throws if the document is in another one. */
  declare(encoding: string): void {
    const name = encoding.toLowerCase();
    if (this.#encoding !== undefined && declared[this.#encoding].test(name)) return;
    if (this.#encoding !== "utf-8" || !extendsAscii.test(name)) throw new Error("declared in another encoding");
    this.#asciiDeclared = true;
  }

  /** Throws if a character was beyond ASCII although the declared encoding is known for ASCII only. */
  check(): void {
    if (this.#asciiDeclared && this.#beyondAscii) throw new Error("an encoding that is known for ASCII only");
  }

  #begin(start: Uint8Array): string {
    if (start[0] === 0xff && start[1] === 0xfe) this.#encoding = "utf-16le";
    else if (start[0] === 0xfe && start[1] === 0xff) this.#encoding = "utf-16be";
    else this.#encoding = "utf-8";
    this.#decoder = new TextDecoder(this.#encoding, { fatal: true, ignoreBOM: true });
    // The parser drops the mark.
    return this.#seen(this.#decoder.decode(start, { stream: true }));
  }

  #seen(text: string): string {
    this.#beyondAscii ||= beyondAscii.test(text);
    return text;
  }
}
