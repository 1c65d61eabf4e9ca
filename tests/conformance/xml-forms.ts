/** XML documents written in every form that XML 1.0 has for the same content: what is stored must not depend on the form. */

/** A name, then a text or what is inside. */
export type XmlNode = readonly [name: string, content: string | readonly XmlNode[]];

/** How one form writes a text, what it puts between elements, and how it makes the document's bytes of the root. */
interface XmlForm {
  readonly text: (text: string) => string;
  readonly between: string;
  readonly tag: string;
  readonly document: (root: string) => Uint8Array;
}

const declaration = '<?xml version="1.0" encoding="utf-8"?>';
const utf8 = (text: string): Uint8Array => Buffer.from(text);
const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("\r", "&#13;");
const section = (text: string): string => `<![CDATA[${text.replaceAll("]]>", "]]]]><![CDATA[>").replaceAll("\r", "]]>&#13;<![CDATA[")}]]>`;
const plain: XmlForm = { text: escaped, between: "", tag: "", document: (root) => utf8(declaration + root) };
const utf16 = (bigEndian: boolean) => (root: string) => {
  const bytes = Buffer.from(`\ufeff<?xml version="1.0" encoding="utf-16"?>${root}`, "utf16le");
  return bigEndian ? bytes.swap16() : bytes;
};

/** By what is special about them. */
export const xmlForms: Readonly<Record<string, XmlForm>> = {
  plain,
  "without a declaration": { ...plain, document: utf8 },
  "CDATA sections": { ...plain, text: section },
  "half in a CDATA section": {
    ...plain,
    text: (text) => [...text].map((one, at) => (at % 2 === 0 ? section(one) : escaped(one))).join(""),
  },
  "decimal references": { ...plain, text: (text) => [...text].map((one) => `&#${one.codePointAt(0)};`).join("") },
  "hexadecimal references": { ...plain, text: (text) => [...text].map((one) => `&#x${one.codePointAt(0)?.toString(16)};`).join("") },
  "named entities": { ...plain, text: (text) => escaped(text).replaceAll('"', "&quot;").replaceAll("'", "&apos;") },
  "comments and instructions inside of texts": {
    ...plain,
    text: (text) => [...text].map((one) => `<!-- & < -->${escaped(one)}<?p <a> &amp; ?>`).join(""),
  },
  "lines that end in CRLF": {
    ...plain,
    text: (text) => escaped(text).replaceAll("\n", "\r\n"),
    between: "\r\n\t",
    document: (root) => utf8(`<?xml version='1.0'\r\nencoding='UTF-8' standalone="yes"?>\r\n${root}\r\n`),
  },
  "lines that end in CR": { ...plain, text: (text) => escaped(text).replaceAll("\n", "\r"), between: "\r" },
  "comments and instructions around elements": {
    ...plain,
    between: "<?p q?><!-- <a> -->\n",
    document: (root) => utf8(`${declaration}\n<!-- c --><?p q?>${root}<!-- c --><?p?>\n`),
  },
  attributes: { ...plain, tag: " xmlns:x = 'urn:x'\r\nx:y='&#61;>' " },
  "a byte order mark": { ...plain, document: (root) => utf8(`\ufeff${declaration}${root}`) },
  "little-endian UTF-16": { ...plain, document: utf16(false) },
  "big-endian UTF-16": { ...plain, document: utf16(true) },
};

function write([name, content]: XmlNode, form: XmlForm): string {
  const inside =
    typeof content === "string" ? form.text(content) : form.between + content.map((node) => write(node, form) + form.between).join("");
  return `<${name}${form.tag}>${inside}</${name}${form.tag.includes("\n") ? "\r\n" : ""}>`;
}

/** Returns the document of that root in every form, with the form's name. */
export const xmlWritings = (root: XmlNode): readonly (readonly [form: string, body: Uint8Array])[] =>
  Object.entries(xmlForms).map(([name, form]) => [name, form.document(write(root, form))]);

/** Returns the text as Stamp's answers write it. */
export const xmlText = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;").replaceAll("\r", "&#xD;");

/** A text with everything that a form may change. */
export const anyText = "a&lt;=\"é'\u{1f600}]]>\r\n\n <b> &#61; ";
