/** The XML reader against XML 1.0: documents written in every way that the standard allows, encodings, and another parser. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { utf8 } from "@stamp/base";
import fc from "fast-check";
import { XMLParser } from "fast-xml-parser";
import { parseXml, type XmlElement, XmlTreeReader } from "./xml.ts";

/** Meaning of a document (an element's name, then its text or its children), and one way to write it. */
interface Written {
  readonly says: XmlElement;
  readonly xml: string;
}

const character = fc.oneof(
  fc.constantFrom(
    "&",
    "<",
    ">",
    '"',
    "'",
    "\r",
    "\n",
    "\t",
    " ",
    "=",
    "]",
    "\u0085",
    "\u00a0",
    "\u2028",
    "\ufeff",
    "\ufffd",
    "é",
    "\u{1f600}",
  ),
  fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCodePoint(code)),
);
const reference = (value: string): fc.Arbitrary<string> => {
  const code = value.codePointAt(0) as number;
  const padded = `&#x000${code.toString(16)};`;
  return fc.constantFrom(`&#${code};`, `&#x${code.toString(16)};`, `&#x${code.toString(16).toUpperCase()};`, padded);
};
const named: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;" };
const nothing = fc.constantFrom("<!---->", "<!-- & < ]]> -->", "<?p?>", "<?p &lt; <a> ?>", "<![CDATA[]]>");

/** One character of a text: itself where XML allows it, a reference, a named entity, or a section. */
const piece: fc.Arbitrary<readonly [string, string]> = character.chain((value) => {
  const ways: fc.Arbitrary<string>[] = [reference(value)];
  if (named[value] !== undefined) ways.push(fc.constant(named[value]));
  if (!"&<>\r".includes(value)) ways.push(fc.constant(value));
  if (value !== "\r") ways.push(fc.constant(`<![CDATA[${value}]]>`));
  // Every end of a line is LF to the reader, also in a section.
  if (value === "\n") ways.push(fc.constantFrom("\r\n", "\n", "<![CDATA[\r\n]]>"));
  return fc.tuple(fc.constant(value), fc.oneof(...ways));
});
/** Texts that look like markup: a second decoding, or markup inside of a section, would change them. */
const lookalike: fc.Arbitrary<readonly [string, string]> = fc
  .tuple(fc.constantFrom("&gt;", "&#61;", "&amp;lt;", "&x;", "<b/>", "<!-- c -->", "<?p?>", "]]"), fc.boolean())
  .map(([value, section]) => [value, section ? `<![CDATA[${value}]]>` : [...value].map((one) => named[one] ?? one).join("")]);
const text = fc
  .array(
    fc.oneof(
      { weight: 5, arbitrary: piece },
      lookalike,
      nothing.map((xml) => ["", xml] as const),
    ),
    { maxLength: 12 },
  )
  .map((pieces) => [pieces.map(([value]) => value).join(""), pieces.map(([, xml]) => xml).join("")] as const);

const name = fc.constantFrom("a", "B", "x-1", "p:q", "_", "é");
const attributes = fc.constantFrom("", " ", "\r\n", " k='1'", ' k = "&#61;>"', " xmlns='u' k='&amp;'");
const blank = fc.constantFrom("", " ", "\r\n\t", "<!-- c -->", "<?p q?>\n");

const leaf: fc.Arbitrary<Written> = fc
  .tuple(name, attributes, text, fc.constantFrom("", " ", "\n"))
  .map(([of, tag, [value, xml], end]) => ({
    says: { name: of, children: [], text: value },
    xml: value === "" && xml === "" ? `<${of}${tag}/>` : `<${of}${tag}>${xml}</${of}${end}>`,
  }));
const branch = (children: fc.Arbitrary<Written>): fc.Arbitrary<Written> =>
  fc
    .tuple(name, attributes, fc.uniqueArray(children, { minLength: 1, maxLength: 4, selector: (child) => child.says.name }), blank)
    .map(([of, tag, inside, between]) => {
      const white = between.replaceAll(/<[^>]*>/g, "").replaceAll("\r\n", "\n");
      return {
        says: { name: of, children: inside.map((child) => child.says), text: white.repeat(inside.length + 1) },
        xml: `<${of}${tag}>${between}${inside.map((child) => child.xml + between).join("")}</${of}>`,
      };
    });
const root = fc.letrec<{ any: Written }>((tie) => ({
  any: fc.oneof({ maxDepth: 4, withCrossShrink: true }, leaf, branch(tie("any"))),
})).any;
const prolog = fc.constantFrom(
  "",
  "<?xml version='1.0'?>",
  '<?xml version="1.0" encoding="UTF-8" standalone=\'yes\' ?>\r\n',
  "<!-- c --><?p?>\n",
);
const epilog = fc.constantFrom("", "\r\n", "<!-- c -->", "<?p?>\n");

const document: fc.Arbitrary<Written> = fc
  .tuple(prolog, root, epilog)
  .map(([before, { says, xml }, after]) => ({ says, xml: before + xml + after }));

const read = (body: Uint8Array): XmlElement | string => {
  const result = parseXml(body, 1_000_000);
  return result.ok ? result.value : result.error.code;
};

test("XML: a document is read as XML 1.0 says, however it is written and wherever it is cut", () => {
  fc.assert(
    fc.property(document, fc.boolean(), fc.integer({ min: 1, max: 40 }), ({ says, xml }, mark, pieceBytes) => {
      const body = utf8((mark ? "\ufeff" : "") + xml);
      assert.deepEqual(read(body), says);
      const reader = new XmlTreeReader();
      for (let at = 0; at < body.length; at += pieceBytes) assert.equal(reader.push(body.subarray(at, at + pieceBytes)), undefined);
      const whole = reader.end();
      assert.deepEqual(whole.ok && whole.value, says);
    }),
    { numRuns: 1000 },
  );
});

type Ordered = Readonly<Record<string, unknown>>;

/** The tree of fast-xml-parser in the order of the document, as ours. */
function treeOf(node: Ordered): XmlElement {
  const [of] = Object.keys(node).filter((key) => key !== ":@");
  let content = "";
  const children: XmlElement[] = [];
  for (const child of node[of as string] as Ordered[]) {
    if ("#text" in child) content += String(child["#text"]);
    else if ("#cdata" in child) content += (child["#cdata"] as Ordered[]).map((part) => String(part["#text"])).join("");
    else children.push(treeOf(child));
  }
  return { name: of as string, children, text: content };
}

test("XML: fast-xml-parser reads the same", () => {
  const other = new XMLParser({
    preserveOrder: true,
    trimValues: false,
    parseTagValue: false,
    ignoreAttributes: true,
    ignoreDeclaration: true,
    ignorePiTags: true,
    cdataPropName: "#cdata",
    htmlEntities: true,
  });
  fc.assert(
    fc.property(document, ({ xml }) => {
      const [found] = (other.parse(xml) as Ordered[]).filter((node) => !("#text" in node));
      assert.deepEqual(read(utf8(xml)), treeOf(found as Ordered), xml);
    }),
    { numRuns: 1000 },
  );
});

const utf16 = (content: string, bigEndian: boolean): Uint8Array => {
  const bytes = Buffer.from(`\ufeff${content}`, "utf16le");
  return bigEndian ? bytes.swap16() : bytes;
};
const says = (content: string) => ({ name: "a", children: [], text: content });

test("XML: UTF-8 and UTF-16 are read, also in pieces; a declaration that names another encoding is refused", () => {
  for (const bigEndian of [false, true]) {
    for (const encoding of ["", " encoding='utf-16'", ` encoding="UTF-16${bigEndian ? "BE" : "LE"}"`]) {
      const body = utf16(`<?xml version='1.0'${encoding}?><a>é\u{1f600}&#61;</a>`, bigEndian);
      assert.deepEqual(read(body), says("é\u{1f600}="));
      const reader = new XmlTreeReader();
      for (const byte of body) assert.equal(reader.push(Uint8Array.of(byte)), undefined);
      const whole = reader.end();
      assert.deepEqual(whole.ok && whole.value, says("é\u{1f600}="));
      assert.equal(read(body.subarray(0, -1)), "InvalidXmlDocument");
    }
    assert.equal(read(utf16("<?xml version='1.0' encoding='utf-8'?><a/>", bigEndian)), "InvalidXmlDocument");
    assert.equal(read(utf16("<a/>", bigEndian).subarray(2)), "InvalidXmlDocument", "UTF-16 begins with a mark");
  }
  const declared = (encoding: string, content: string) => read(utf8(`<?xml version="1.0" encoding="${encoding}"?><a>${content}</a>`));
  for (const encoding of ["utf-8", "UTF-8", "utf8"]) assert.deepEqual(declared(encoding, "é"), says("é"));
  for (const encoding of ["us-ascii", "ISO-8859-1", "Windows-1252"]) {
    assert.deepEqual(declared(encoding, "e&#233;"), says("eé"));
    assert.equal(declared(encoding, "é"), "InvalidXmlDocument", "read as UTF-8, it would be another text");
  }
  for (const encoding of ["utf-16", "utf-32", "utf-7", "IBM037", "x"]) assert.equal(declared(encoding, "e"), "InvalidXmlDocument");
  assert.equal(read(Uint8Array.of(...utf8("<a>"), 0xe9, ...utf8("</a>"))), "InvalidXmlDocument");
  for (const body of ["", "\ufeff", "\ufeff\ufeff<a/>", "<"]) assert.equal(read(utf8(body)), "InvalidXmlDocument");
  assert.equal(read(Uint8Array.of(0xff, 0xfe)), "InvalidXmlDocument");
});

test("XML: what XML 1.0 forbids is refused", () => {
  for (const xml of [
    "<a>]]></a>",
    "<a><!-- -- --></a>",
    "<a><?xml version='1.0'?></a>",
    " <?xml version='1.0'?><a/>",
    "<?xml encoding='utf-8'?><a/>",
    "<a>&amp</a>",
    "<a>&#;</a>",
    "<a>&#xg;</a>",
    "<a>&#x110000;</a>",
    "<a>&#0;</a>",
    "<a>&#xfffe;</a>",
    "<a>\uffff</a>",
    "<a b=1/>",
    "<a b='<'/>",
    "<a b='&x;'/>",
    "<a b='1'c='2'/>",
    "<a></A>",
    "<1a/>",
    "<a><![CDATA[</a>",
    "<a><![cdata[x]]></a>",
    "<a/><b/>",
    "x<a/>",
    "<a/>&#32;",
    "<![CDATA[x]]><a/>",
    "<!DOCTYPE a><a/>",
    "<a>text<b/></a>",
    "<a><b/><b/></a>",
    "<a><b>1</b><c/><b>2</b></a>",
    "<a><b/>&#160;</a>",
  ]) {
    assert.equal(read(utf8(xml)), "InvalidXmlDocument", xml);
  }
});
