/** Containers of an init file, with the files that become their blobs. */
import type { InitCounts, InitTarget } from "./applying.ts";
import { inParallel } from "./in-parallel.ts";
import { type Init, InitError, seedFolder } from "./load-init.ts";
import { applyPolicies } from "./policies.ts";
import type { InitContainer } from "./schema.ts";

const atOnce = 8;
const anyType = "application/octet-stream";

export async function applyContainer(
  applying: InitTarget,
  init: Init,
  account: string,
  container: InitContainer,
  counts: InitCounts,
): Promise<void> {
  const { name, publicAccess, metadata, policies, overwrite } = container;
  const access = publicAccess === "none" ? {} : { "x-ms-blob-public-access": publicAccess };
  const path = `/${name}?restype=container`;
  const headers = { ...access, ...metadataHeaders(metadata) };
  const made = await applying.requests.ask("blob", account, { method: "PUT", path, headers }, [201, 409]);
  const code = made.headers["x-ms-error-code"];
  if (made.status === 201) counts.containers++;
  else if (code !== "ContainerAlreadyExists") throw new InitError(`container ${name} of ${account} can't be made: ${code}`);
  const place = { service: "blob", account, path: `${path}&comp=acl`, what: `container ${name} of ${account}` } as const;
  await applyPolicies(applying, place, policies, overwrite, counts);
  if (container.files !== undefined) await applyFiles(applying, init, account, container, counts);
}

/** Puts each file whose blob is not there. With `overwrite` also each whose blob has other bytes, by their MD5, or another type. */
async function applyFiles(
  { requests, files }: InitTarget,
  init: Init,
  account: string,
  { name, files: named = "", prefix, contentTypes, overwrite }: InitContainer,
  counts: InitCounts,
): Promise<void> {
  const found = await seedFolder(files, init.folder, named);
  const folder = files.resolve(init.folder, named);
  await inParallel(found, atOnce, async ({ path: file, bytes }) => {
    const path = `/${name}/${(prefix + file).split("/").map(encodeURIComponent).join("/")}`;
    const ending = Object.keys(contentTypes).find((each) => file.toLowerCase().endsWith(each.toLowerCase()));
    const type = ending === undefined ? anyType : (contentTypes[ending] as string);
    const at = files.resolve(folder, file);
    const headers = { "x-ms-blob-type": "BlockBlob", "x-ms-blob-content-type": type, ...(overwrite ? {} : { "if-none-match": "*" }) };
    // Else a file of which the blob is there would be read for nothing.
    const there = await requests.ask("blob", account, { method: "HEAD", path }, [200, 404]);
    if (there.status === 200 && !overwrite) return;
    if (there.status === 200 && (await isSame(() => requests.md5Of(files.read(at)), there.headers, bytes, type))) return;
    const stream = { bytes, read: () => files.read(at) };
    const put = await requests.ask("blob", account, { method: "PUT", path, headers, stream }, [201, 409, 412]);
    if (put.status === 201) counts.blobs++;
    else if (put.headers["x-ms-error-code"] !== "BlobAlreadyExists")
      throw new InitError(`blob ${prefix}${file} in container ${name} of ${account}: ${put.headers["x-ms-error-code"]}`);
  });
}

async function isSame(
  md5: () => Promise<string>,
  headers: Readonly<Record<string, string>>,
  bytes: number,
  type: string,
): Promise<boolean> {
  if (headers["content-length"] !== String(bytes) || headers["content-type"] !== type) return false;
  return headers["content-md5"] !== undefined && headers["content-md5"] === (await md5());
}

export const metadataHeaders = (metadata: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(metadata).map(([name, value]) => [`x-ms-meta-${name.toLowerCase()}`, value]));
