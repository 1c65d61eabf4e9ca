/** What every service does alike with its properties: CORS for browsers, analytics refused; and no secondary is ever served. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ServiceName } from "@stamp/azure-rest";
import { rawExchange } from "./raw-connection.ts";
import type { Clients } from "./target.ts";

const page = "http://page.example";
const rules =
  `<Cors><CorsRule><AllowedOrigins>${page}</AllowedOrigins><AllowedMethods>GET,PUT</AllowedMethods>` +
  "<MaxAgeInSeconds>60</MaxAgeInSeconds><ExposedHeaders>x-ms-*</ExposedHeaders><AllowedHeaders>x-ms-*</AllowedHeaders></CorsRule></Cors>";
const retention = "<RetentionPolicy><Enabled>false</Enabled></RetentionPolicy>";
const logging = (on: boolean): string =>
  `<Logging><Version>1.0</Version><Delete>${on}</Delete><Read>false</Read><Write>false</Write>${retention}</Logging>`;
const metrics = (name: string): string =>
  `<${name}><Version>1.0</Version><Enabled>true</Enabled><IncludeAPIs>true</IncludeAPIs>${retention}</${name}>`;

/** `readable`: a path, with its query, that a GET reads. */
export function serviceRules(clients: () => Clients, readable: string, service: ServiceName): void {
  const set = async (properties: string): Promise<readonly [number, string | null]> => {
    const body = `<StorageServiceProperties>${properties}</StorageServiceProperties>`;
    const headers = { "content-type": "application/xml" };
    const answer = await clients().raw("PUT", "/?restype=service&comp=properties", { headers, body });
    return [answer.status, answer.headers.get("x-ms-error-code")];
  };
  const preflight = async (origin: string, method: string): Promise<Response> =>
    clients().raw("OPTIONS", readable, {
      sign: false,
      headers: { origin, "access-control-request-method": method, "access-control-request-headers": "x-ms-date" },
    });

  test("a browser may do from a page what the CORS rules say", async () => {
    assert.equal((await preflight(page, "GET")).status, 403);
    assert.deepEqual(await set(rules), [202, null]);
    const allowed = await preflight(page, "PUT");
    assert.deepEqual(
      [allowed.status, allowed.headers.get("access-control-allow-origin"), allowed.headers.get("access-control-max-age")],
      [200, page, "60"],
    );
    assert.equal((await preflight(page, "DELETE")).status, 403);
    assert.equal((await preflight("http://other.example", "GET")).status, 403);
    const read = async (origin: string): Promise<readonly (number | string | null)[]> => {
      const answer = await clients().raw("GET", readable, { headers: { origin } });
      const exposed = answer.headers.get("access-control-expose-headers")?.split(",") ?? [];
      return [
        answer.status,
        answer.headers.get("access-control-allow-origin"),
        exposed.filter((name) => name === "x-ms-request-id").join(),
      ];
    };
    assert.deepEqual(await read(page), [200, page, "x-ms-request-id"]);
    assert.deepEqual(await read("http://other.example"), [200, null, ""]);
    assert.deepEqual(await set("<Cors/>"), [202, null]);
    assert.equal((await preflight(page, "GET")).status, 403);
  });

  test("analytics that would be switched on are 501; switched off they are kept", async () => {
    for (const properties of [logging(true), metrics("HourMetrics"), metrics("MinuteMetrics")]) {
      assert.deepEqual(await set(properties), [501, "NotImplemented"], properties);
    }
    assert.deepEqual(await set(logging(false)), [202, null]);
  });

  test("a secondary location is 403 at once, and the primary is not served in its place", async () => {
    const { endpoint, accountName } = clients().target;
    const statistics = "/?restype=service&comp=stats";
    for (const path of [readable, statistics]) {
      const answer = await fetch(`${endpoint}/${accountName}-secondary${path}`);
      assert.deepEqual([answer.status, answer.headers.get("x-ms-error-code")], [403, "InsufficientAccountPermissions"], path);
      assert.match(await answer.text(), /no secondary location/);
      const host = `${accountName}-secondary.${service}.localhost`;
      const text = await rawExchange(clients(), { method: "GET", path, host });
      assert.match(text, /^HTTP\/1\.1 403 /, `${host} ${path}`);
      assert.match(text, /no secondary location/, `${host} ${path}`);
    }
  });

  test("statistics at the primary are 400, and the answer says that there is no secondary", async () => {
    const answer = await clients().raw("GET", "/?restype=service&comp=stats");
    assert.deepEqual([answer.status, answer.headers.get("x-ms-error-code")], [400, "InvalidQueryParameterValue"]);
    assert.match(await answer.text(), /no secondary location/);
  });
}
