/** Continuations: keys of rows as text that stands in a header and in a query. */
import { badQuery, type Parsed, parsed } from "@stamp/azure-rest";
import { fromHex, toHex } from "@stamp/base";
import { decodeKey, encodeKey, type KeyElement } from "@stamp/objects";

const bad = badQuery("continuation", "", "It is none that this list has given.");

export const encodeToken = (elements: readonly KeyElement[]): string => toHex(encodeKey([elements]));

/** `read`: undefined for elements that encodeToken was never given. */
export function decodeToken<T>(text: string, read: (elements: readonly KeyElement[]) => T | undefined): Parsed<T> {
  const bytes = bytesOf(text);
  const components = bytes && decodeKey(bytes, 1);
  const value = components?.ok ? read(components.value[0] ?? []) : undefined;
  return value === undefined ? bad : parsed(value);
}

const tokenCharactersMax = 16_384;

export const bytesOf = (text: string): Uint8Array | undefined =>
  text.length > 0 && text.length <= tokenCharactersMax && text.length % 2 === 0 && /^[0-9a-f]+$/.test(text) ? fromHex(text) : undefined;
