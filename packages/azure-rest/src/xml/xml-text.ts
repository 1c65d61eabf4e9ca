/** Text in XML: escaping on the way out, and which characters XML 1.0 can't carry at all. On the hot path of lists. */

// biome-ignore lint/suspicious/noControlCharactersInRegex: the characters that XML can't carry are what it looks for.
const special = /[&<>"\r\u0000-\u0008\u000B\u000C\u000E-\u001F\uFFFE\uFFFF\uD800-\uDFFF]/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: as above.
const uncarried = /[\u0000-\u0008\u000B\u000C\u000E-\u001F\uFFFE\uFFFF]/;
const uncarriedAll = new RegExp(uncarried, "g");

/**
 * Escapes a text for elements and attributes. What XML can't carry becomes U+FFFD: what could have it is encoded (`named`) or refused before.
 * What is left is the text of an error about it.
 */
export function escapeXml(text: string): string {
  if (!special.test(text)) return text;
  // Whole texts at a time: a message of 64 KiB may consist of what must be escaped.
  const escaped = text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("\r", "&#xD;");
  return escaped.toWellFormed().replace(uncarriedAll, "\uFFFD");
}

const isWhite = (code: number): boolean => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;

/** Returns the text without the white space of XML at both ends. Other blanks, as U+00A0 and U+FEFF, are characters of the text. */
export function trimXml(text: string): string {
  let [start, end] = [0, text.length];
  while (start < end && isWhite(text.charCodeAt(start))) start++;
  while (end > start && isWhite(text.charCodeAt(end - 1))) end--;
  return text.slice(start, end);
}

/** True if the text has characters that XML 1.0 can't carry, not even as references. */
export const needsEncoding = (text: string): boolean => uncarried.test(text);

export const element = (name: string, text: string): string => `<${name}>${escapeXml(text)}</${name}>`;

/** Returns a name of a blob, or what is a part of one: percent-encoded, and said to be, where XML can't carry it ("List Blobs", since 2021-02-12). */
export const named = (element: string, name: string): string =>
  needsEncoding(name)
    ? `<${element} Encoded="true">${encodeURIComponent(name.toWellFormed())}</${element}>`
    : `<${element}>${escapeXml(name)}</${element}>`;

/** Returns nothing for the empty text: the service leaves such properties out. */
export const elementIfAny = (name: string, text: string): string => (text === "" ? "" : element(name, text));
