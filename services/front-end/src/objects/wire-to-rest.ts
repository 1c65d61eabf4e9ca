/** Objects as partition servers give them, as the REST API shows them. */
import type { ListEntry, ListedBlobProperties, ListedContainer } from "@stamp/azure-rest";
import type { Blob, BlobPage, Container } from "@stamp/wire";
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

export function blobOf(blob: Blob): ListedBlobProperties {
  const plain = plainOf(blob);
  const { headers, lease } = plain;
  if (!headers || !lease) return { ...plain, headers: headers ?? noHeaders, lease: lease ?? notLeased };
  // Not copied: lists have thousands.
  return plain as typeof plain & { readonly headers: typeof headers; readonly lease: typeof lease };
}

export function containerOf(container: Container): ListedContainer {
  const { lease = notLeased, ...plain } = plainOf(container);
  return { ...plain, lease };
}

export function entriesOf(page: Pick<BlobPage, "entries">): ListEntry[] {
  const entries: ListEntry[] = [];
  for (const { kind } of page.entries) {
    if (kind.case === "blob") entries.push({ kind: "blob", blob: blobOf(kind.value) });
    else if (kind.case === "prefix") entries.push({ kind: "prefix", name: kind.value });
  }
  return entries;
}
