/** The Blob service. */
import {
  badHeader,
  blobAuthorizationOf,
  blobPathAuthorization,
  checkNames,
  checkUnsupported,
  dataLakeErrorBody,
  errorBody,
  formatIso,
  parseBlobResource,
  parseCustomerKeys,
  parsed,
  reasonPhraseOf,
  recognizeBlob,
  refuseOtherService,
  signedBlobResource,
} from "@stamp/azure-rest";
import { parseWhere } from "@stamp/objects";
import { signedIdentifiersFromWire } from "@stamp/wire";
import { targetAsNamed } from "../../objects/older-names.ts";
import type { RestService } from "../service.ts";
import { isHierarchical } from "./exchange.ts";
import { serve, serveInTree } from "./in-tree.ts";

export const blobService = (hostSuffixes: readonly string[]): RestService => ({
  name: "blob",
  serverName: "Stamp-Blob/1.0",
  hostSuffixes,
  named: targetAsNamed,
  reasonPhrase: reasonPhraseOf,
  resource(target) {
    const resource = parseBlobResource(target);
    return resource.ok ? parsed(signedBlobResource(resource.value, target.query)) : resource;
  },
  async storedPolicies(objects, account, resource, limits) {
    if (resource.kind !== "container" && resource.kind !== "blob") return parsed([]);
    const row = await objects.container(account, resource.container, limits);
    if (!row.ok) return row.error.code === "ContainerNotFound" ? parsed([]) : row;
    return parsed(signedIdentifiersFromWire(row.value.signedIdentifiers));
  },
  refuse: (method, target, headers) => refuseOtherService(method, target, headers),
  recognize(method, target, headers) {
    const resource = parseBlobResource(target);
    if (!resource.ok) return resource;
    const names = checkNames(resource.value, target.older);
    if (!names.ok) return names;
    const named = { ...target, ...resource.value };
    const operation = recognizeBlob(method, named, headers);
    if (!operation.ok) return operation;
    const supported = checkUnsupported(operation.value, headers);
    if (!supported.ok) return supported;
    for (const name of ["x-ms-if-tags", "x-ms-source-if-tags"] as const) {
      const text = headers[name];
      const condition = text === undefined ? undefined : parseWhere(text, "condition");
      if (condition?.ok === false) return badHeader(name, text ?? "", condition.reason);
    }
    return parsed({
      name: operation.value,
      authorization: blobPathAuthorization(operation.value, blobAuthorizationOf(operation.value, headers, target.query)),
      async serve(exchange) {
        const { objects, request, version } = exchange;
        const asking = { operation: operation.value, headers: exchange.headers, version, secure: request.secure };
        const keys = parseCustomerKeys(asking, (bytes) => objects.parts.world.digest.sha256(bytes));
        if (!keys.ok) return keys;
        const asked = { ...exchange, ...keys.value, target: named, operation: operation.value, containerRow: undefined };
        if (isHierarchical(exchange)) return serveInTree(asked);
        return serve(asked);
      },
    });
  },
  errorBody(error, { requestId, nowMs, headers }) {
    const isOfDataLake = error.code === "NotImplemented" || error.code === "HierarchicalNamespaceNotEnabled";
    if (isOfDataLake && headers.accept === "application/json") {
      return { contentType: "application/json", text: dataLakeErrorBody(error) };
    }
    return { contentType: "application/xml", text: errorBody(error, requestId, formatIso(nowMs)) };
  },
});
