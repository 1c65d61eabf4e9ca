/**
 * The source of a rename, for a caller by a shared access signature: a signature covers one path or what is below one, and a rename has two.
 * So the source has a signature of its own (SDKs send the same one twice), which must let the caller rename what it is for.
 */
import { hasSas, notImplemented, type Parsed, parsed, queryValue, rejected } from "@stamp/azure-rest";
import { coversOnePath, type DataLakeExchange } from "./exchange.ts";

const renaming: ReadonlySet<string> = new Set(["RenamePath"]);
const header = "x-ms-rename-source";

/** Returns true if a directory may not be renamed, because a signature is for one path and not for what is below it. */
export async function admitSource(exchange: DataLakeExchange<"RenamePath">): Promise<Parsed<boolean>> {
  const { source } = exchange.asked;
  const { access, target } = exchange;
  const isOnePath = coversOnePath(exchange);
  if (source.query.size === 0) {
    // A signature of the account covers both paths.
    const covers = access.by !== "sas" || queryValue(target.query, "ss");
    return covers ? parsed(false) : rejected("AuthorizationPermissionMismatch", {}, { message: unsigned });
  }
  if (!hasSas(source.query)) return rejected("InvalidSourceUri", {}, { message: "The query of a source is a shared access signature." });
  const path = [source.filesystem, ...source.path.split("/")].map(encodeURIComponent).join("/");
  const account = target.addressing === "path" ? `/${target.account}` : "";
  const query = [...source.query].flatMap(([name, values]) => values.map((value) => `${name}=${encodeURIComponent(value)}`)).join("&");
  const inner = { method: "PUT", target: `${account}/${path}?${query}`, headers: { [header]: `/${path}` } };
  const admitted = await exchange.admit(inner, renaming);
  if (!admitted.ok) return admitted;
  const { judged } = admitted.value.access;
  // Lists judge one identity, for both paths.
  if (judged && judged.id !== access.judged?.id) return notImplemented("A source that is signed for another user (suoid) than the target");
  return parsed(isOnePath || coversOnePath({ ...exchange, ...admitted.value }));
}

const unsigned = `A rename by a shared access signature needs one for its source, too: ${header}: /filesystem/path?signature. It may be the same.`;
