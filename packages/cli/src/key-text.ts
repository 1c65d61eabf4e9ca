/** Keys of object tables (docs/formats/key.md) as people read them. */
import { toHex } from "@stamp/base";
import { decodeKey, type KeyElement } from "@stamp/objects";

const shownMax = 60;

/**
 * `account/container@incarnation/blob`, `account/table@incarnation/PartitionKey`, … ; the row of a container, table or queue is
 * `account/name`. What is no key in hexadecimal.
 */
export function keyText(key: Uint8Array): string {
  const decoded = decodeKey(key);
  if (!decoded.ok || decoded.value.length === 0) return shortened(`0x${toHex(key)}`);
  const [account = [], partition = [], object = []] = decoded.value;
  // The first number of a PartitionName says what kind of row it is, the second which incarnation.
  const [, name, incarnation, ...inside] = partition;
  const parent = name === undefined ? [] : [incarnation === undefined ? textOf(name) : `${textOf(name)}@${textOf(incarnation)}`];
  return shortened([...account.map(textOf), ...parent, ...inside.map(textOf), ...object.map(textOf)].join("/"));
}

const textOf = (element: KeyElement): string => (element instanceof Uint8Array ? `0x${toHex(element)}` : String(element));

const shortened = (text: string): string => {
  const printable = [...text.replaceAll(/\p{C}/gu, "·")];
  return printable.length <= shownMax ? printable.join("") : `${printable.slice(0, shownMax - 1).join("")}…`;
};
