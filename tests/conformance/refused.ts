/** What the service has and we do not: every such row of the recognition table is 501 with the feature's name, and changes nothing. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { blobRequests } from "@stamp/azure-rest";
import type { Clients } from "./target.ts";

export function refusedSuite(clients: () => Clients): void {
  describe("refused", () => {
    test("every request whose meaning we don't have is 501 with its name", async () => {
      const container = await clients().container();
      await container.getBlockBlobClient("b").upload("kept", 4);
      const paths = { service: "", container: `/${container.containerName}`, blob: `/${container.containerName}/b` };
      for (const { title, resource, request } of blobRequests().filter((row) => !row.served)) {
        const [method = "", ...query] = request.split(" ");
        const body = method === "PUT" || method === "POST" ? { body: "" } : {};
        const answer = await clients().raw(method, `${paths[resource]}?${query.join("&")}`, body);
        assert.deepEqual([answer.status, answer.headers.get("x-ms-error-code")], [501, "NotImplemented"], title);
        if (method !== "HEAD") assert.ok((await answer.text()).includes(title.replaceAll("&", "&amp;")), title);
      }
      assert.equal((await container.getBlockBlobClient("b").downloadToBuffer()).toString(), "kept");
    });
  });
}
