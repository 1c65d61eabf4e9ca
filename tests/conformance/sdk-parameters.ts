/** What the SDK can send: headers and query parameters, read from its published parameters, so that a newer SDK brings its new ones along. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

interface Parameter {
  readonly parameterPath?: unknown;
  readonly mapper?: { readonly serializedName?: string; readonly headerCollectionPrefix?: string };
}

/** Names of bodies and of the URL itself. */
const noParameters: ReadonlySet<string> = new Set([
  ...["BlobServiceProperties", "BlobTags", "BlockLookupList", "KeyInfo", "QueryRequest", "body", "containerAcl", "url"],
]);

/** Folder of the package `@azure/storage-blob`. */
function packageFolder(): string {
  const main = fileURLToPath(import.meta.resolve("@azure/storage-blob"));
  return main.slice(0, main.lastIndexOf("/dist/"));
}

/** Returns the names in lower case; of metadata, the prefix. */
export async function sdkParameterNames(): Promise<ReadonlySet<string>> {
  const path = join(packageFolder(), "dist/esm/generated/src/models/parameters.js");
  const parameters = Object.values((await import(pathToFileURL(path).href)) as Record<string, Parameter>);
  const names = parameters.flatMap(({ mapper }) => mapper?.headerCollectionPrefix ?? mapper?.serializedName ?? []);
  return new Set(names.filter((name) => !noParameters.has(name)).map((name) => name.toLowerCase()));
}

/** Whether a name of the SDK is a header; else it is a query parameter. */
export const isHeader = (name: string): boolean => /^(x-ms-|if-|content-|accept$)/.test(name);

/** Returns for every operation of the SDK (`blob.download`) the headers that it sends, in lower case. */
export async function sdkOperationHeaders(): Promise<ReadonlyMap<string, readonly string[]>> {
  const generated = join(packageFolder(), "dist/esm/generated/src");
  const parameters = (await import(pathToFileURL(join(generated, "models/parameters.js")).href)) as Record<string, Parameter>;
  const operations = new Map<string, readonly string[]>();
  for (const file of await readdir(join(generated, "operations"))) {
    if (!file.endsWith(".js")) continue;
    const text = await readFile(join(generated, "operations", file), "utf8");
    for (const [, operation = "", spec = ""] of text.matchAll(/const (\w+)OperationSpec = \{([\s\S]*?)\n\};/g)) {
      const named = [...spec.matchAll(/Parameters\.(\w+)/g)].map(([, name = ""]) => parameters[name]?.mapper?.serializedName ?? "");
      operations.set(`${file.slice(0, -3)}.${operation}`, named.map((name) => name.toLowerCase()).filter(isHeader));
    }
  }
  return operations;
}
