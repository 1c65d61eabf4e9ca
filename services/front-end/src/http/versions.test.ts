import assert from "node:assert/strict";
import { test } from "node:test";
import { type HttpHeaders, newestVersion, type Parsed, parseQuery, type ServiceName } from "@stamp/azure-rest";
import { type LogFields, type Logger, silentLogger } from "@stamp/ports";
import { RequestVersions } from "./versions.ts";

function versionsOf(service: ServiceName, strict = false) {
  const logged: LogFields[] = [];
  const logger: Logger = { ...silentLogger, info: (_message, fields = {}) => logged.push(fields) };
  const versions = new RequestVersions({ service, strict, logger });
  const of = (headers: HttpHeaders, query = "", fallback?: string): string => {
    const asked = parseQuery(query);
    assert.ok(asked.ok);
    const version: Parsed<string> = versions.of(headers, asked.value, fallback);
    return version.ok ? version.value : `${version.error.status} ${version.error.code}`;
  };
  return { of, logged };
}

test("the header goes first, then api-version, then the version of the SAS, then the account's default", () => {
  const { of } = versionsOf("blob");
  const sas = "sv=2020-12-06&sig=x";
  assert.equal(of({ "x-ms-version": "2019-12-12" }, `${sas}&api-version=2011-08-18`, "2014-02-14"), "2019-12-12");
  assert.equal(of({}, `${sas}&api-version=2011-08-18`, "2014-02-14"), "2011-08-18");
  assert.equal(of({}, `${sas}&api-version=`, "2014-02-14"), "2020-12-06");
  assert.equal(of({}, "sv=2020-12-06", "2014-02-14"), "2014-02-14", "sv belongs to a signature");
  assert.equal(of({}, "sig=x", "2014-02-14"), "2014-02-14", "a SAS of before 2012-02-12 has no version");
  assert.equal(of({}, "", "2099-01-01"), newestVersion);
});

test("without any: 2009-09-19 for whoever is not known by a key, in the Blob service", () => {
  const blob = versionsOf("blob");
  assert.equal(blob.of({}), "2009-09-19");
  assert.equal(blob.of({}, "sig=x"), "2009-09-19");
  assert.equal(blob.of({ authorization: "Bearer x" }), "2009-09-19");
  assert.equal(blob.of({ authorization: "SharedKey a:b" }), newestVersion);
  for (const service of ["queue", "table"] as const) assert.equal(versionsOf(service).of({}), newestVersion);
});

test("what is no version is refused, also where the request has another one", () => {
  const { of } = versionsOf("blob");
  for (const bad of ["", "2020-01-01", "yesterday"])
    assert.equal(of({ "x-ms-version": bad }, "", "2019-12-12"), "400 InvalidHeaderValue", bad);
  assert.equal(of({}, "api-version=2020-01-01", "2019-12-12"), "400 InvalidQueryParameterValue");
  assert.equal(of({}, "sv=2020-01-01&sig=x", "2019-12-12"), "2019-12-12", "the signature is refused later");
});

test("a newer one is served as the newest, with one line in the log for each, and for a bounded number of them", () => {
  const { of, logged } = versionsOf("blob");
  for (let i = 0; i < 3; i++) assert.equal(of({ "x-ms-version": "2099-01-01" }), newestVersion);
  assert.equal(of({}, "api-version=2099-01-02"), newestVersion);
  assert.equal(of({}, "sv=2099-01-02&sig=x"), newestVersion);
  assert.equal(of({ "x-ms-version": "2019-12-12" }), "2019-12-12");
  assert.deepEqual(logged, [
    { service: "blob", version: "2099-01-01", servedAs: newestVersion },
    { service: "blob", version: "2099-01-02", servedAs: newestVersion },
  ]);
  for (let year = 2100; year < 2200; year++) of({ "x-ms-version": `${year}-01-01` });
  assert.equal(logged.length, 32);
});

test("strict: a newer one is refused", () => {
  const { of, logged } = versionsOf("blob", true);
  assert.equal(of({ "x-ms-version": "2099-01-01" }), "400 InvalidHeaderValue");
  assert.equal(of({}, "api-version=2099-01-01"), "400 InvalidQueryParameterValue");
  assert.equal(of({ "x-ms-version": newestVersion }), newestVersion);
  assert.deepEqual(logged, []);
});
