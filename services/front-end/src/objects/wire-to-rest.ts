/** Objects of partition servers in the form of the REST API. */
import type { ShownBlob, ShownContainer } from "@stamp/base";
import type { Blob, Container } from "@stamp/wire";
import { plainOf } from "@stamp/wire";

const noHeaders = {
  contentType: "",
  contentEncoding: "",
  contentLanguage: "",
  contentMd5: new Uint8Array(0),
  cacheControl: "",
  contentDisposition: "",
};
const notLeased = { state: "available", status: "unlocked", duration: "" };

export function blobOf(blob: Blob): ShownBlob {
  const plain = plainOf(blob);
  const { headers, lease } = plain;
  if (!headers || !lease) return { ...plain, headers: headers ?? noHeaders, lease: lease ?? notLeased };
  // Not copied: lists have thousands.
  return plain as typeof plain & { readonly headers: typeof headers; readonly lease: typeof lease };
}

export function containerOf(container: Container): ShownContainer {
  const { lease = notLeased, ...plain } = plainOf(container);
  return { ...plain, lease };
}
