/** Service properties: their XML both ways, the stored text as it was first written, and which cross-origin request fits which rule. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import fc from "fast-check";
import type { Parsed } from "../rest-error.ts";
import { newestVersion } from "../version.ts";
import { parseXml, type XmlElement } from "../xml/xml.ts";
import { corsHeaders, originFits, preflightHeaders } from "./cors.ts";
import {
  type CorsRule,
  decodeServiceProperties,
  defaultServiceProperties,
  encodeServiceProperties,
  type ServiceName,
  type ServiceProperties,
} from "./service-properties.ts";
import { parseServiceProperties, servicePropertiesXml } from "./service-properties-xml.ts";

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);
const retention = fc.oneof(
  fc.constant({ enabled: false }),
  fc.record({ enabled: fc.constant(true), days: fc.integer({ min: 1, max: 365 }) }, { noNullPrototype: true }),
);
const metrics = fc.record({ version: fc.constant("1.0"), enabled: fc.constant(false), retention }, { noNullPrototype: true });
const words = (minLength: number) => fc.array(fc.stringMatching(/^[a-z][a-z0-9-]{0,12}$/), { minLength, maxLength: 3 });
const rule: fc.Arbitrary<CorsRule> = fc.record(
  {
    allowedOrigins: words(1).map((hosts) => hosts.map((host) => `https://${host}.example`)),
    allowedMethods: fc.subarray(["GET", "PUT", "DELETE", "HEAD"], { minLength: 1 }),
    allowedHeaders: words(0),
    exposedHeaders: words(0),
    maxAgeSeconds: fc.integer({ min: 0, max: 86_400 }),
  },
  { noNullPrototype: true },
);
const properties: fc.Arbitrary<ServiceProperties> = fc.record(
  {
    logging: fc.record(
      { version: fc.constant("1.0"), delete: fc.boolean(), read: fc.boolean(), write: fc.boolean(), retention },
      { noNullPrototype: true },
    ),
    hourMetrics: metrics,
    minuteMetrics: metrics,
    cors: fc.array(rule, { maxLength: 4 }),
    deleteRetention: retention.map((policy) => ({ ...policy, allowPermanentDelete: false })),
    staticWebsite: fc.constantFrom(
      { enabled: false },
      { enabled: true, indexDocument: "index.html", errorDocument404Path: "errors/404.html" },
    ),
    containerDeleteRetention: fc.constant({ enabled: false }),
    publicAccessForbidden: fc.constant(false),
    hierarchicalNamespace: fc.constant(false),
    versioning: fc.constant(false),
  },
  { noNullPrototype: true },
);
const codeOf = (result: Parsed<unknown>): string => (result.ok ? "ok" : result.error.code);

test("service properties: what Get shows, Set takes back", () => {
  fc.assert(
    fc.property(properties, (given) => {
      const back = parseServiceProperties(utf8(servicePropertiesXml(given, "blob", newestVersion)), "blob", defaultServiceProperties);
      assert.ok(back.ok, JSON.stringify(back));
      assert.deepEqual(back.value, given);
      assert.deepEqual(decodeServiceProperties(encodeServiceProperties(given)), given);
    }),
  );
});

test("service properties: what the operator set is not in the XML and stays; a queue has nothing of the blob's", () => {
  const held: ServiceProperties = { ...defaultServiceProperties, versioning: true, containerDeleteRetention: { enabled: true, days: 3 } };
  const set = parseServiceProperties(utf8("<StorageServiceProperties><Cors/></StorageServiceProperties>"), "blob", held);
  assert.deepEqual(set, { ok: true, value: held });
  const of = (service: ServiceName, version: string): string[] => {
    const root = parseXml(utf8(servicePropertiesXml(held, service, version)), 10_000);
    return root.ok ? root.value.children.map((child: XmlElement) => child.name) : [];
  };
  assert.deepEqual(of("queue", newestVersion), ["Logging", "HourMetrics", "MinuteMetrics", "Cors"]);
  assert.deepEqual(of("blob", "2015-04-05"), ["Logging", "HourMetrics", "MinuteMetrics", "Cors"]);
  assert.deepEqual(of("blob", newestVersion).slice(4), ["DeleteRetentionPolicy", "StaticWebsite"]);
  const website = "<StorageServiceProperties><StaticWebsite><Enabled>false</Enabled></StaticWebsite></StorageServiceProperties>";
  assert.equal(codeOf(parseServiceProperties(utf8(website), "table", held)), "UnsupportedXmlNode");
});

const golden = new URL("../../../../tests/golden/service-properties/v1/blob.json", import.meta.url);
const goldenProperties: ServiceProperties = {
  ...defaultServiceProperties,
  cors: [{ allowedOrigins: ["*"], allowedMethods: ["GET"], allowedHeaders: ["x-ms-*"], exposedHeaders: [], maxAgeSeconds: 9 }],
  defaultServiceVersion: "2021-12-02",
  deleteRetention: { enabled: true, days: 7, allowPermanentDelete: true },
  containerDeleteRetention: { enabled: true, days: 8 },
  versioning: true,
};

test("service properties: the golden text is written and read as it was; damage and newer formats are not taken for defaults", () => {
  if (process.env.STAMP_WRITE_GOLDEN) writeFileSync(golden, encodeServiceProperties(goldenProperties));
  const text = readFileSync(golden, "utf8");
  assert.equal(encodeServiceProperties(goldenProperties), text);
  assert.deepEqual(decodeServiceProperties(text), goldenProperties);
  assert.deepEqual(decodeServiceProperties(""), defaultServiceProperties);
  assert.deepEqual(decodeServiceProperties('{"v":1}'), defaultServiceProperties);
  for (const damaged of [text.slice(0, -1), text.slice(1), '{"v":4}', "null", "[]", "7"])
    assert.equal(decodeServiceProperties(damaged), undefined, damaged);
});

const golden2 = new URL("../../../../tests/golden/service-properties/v2/blob.json", import.meta.url);

test("service properties: what version 1 can't say is version 2, and only that", () => {
  const forbidden: ServiceProperties = { ...goldenProperties, publicAccessForbidden: true };
  if (process.env.STAMP_WRITE_GOLDEN) writeFileSync(golden2, encodeServiceProperties(forbidden));
  const text = readFileSync(golden2, "utf8");
  assert.equal(encodeServiceProperties(forbidden), text);
  assert.deepEqual(decodeServiceProperties(text), forbidden);
  assert.match(text, /^\{"v":2,/);
  assert.match(encodeServiceProperties(goldenProperties), /^\{"v":1,/);
});

const golden3 = new URL("../../../../tests/golden/service-properties/v3/blob.json", import.meta.url);

test("service properties: those of a hierarchical account are version 3, and no other", () => {
  const hierarchical: ServiceProperties = { ...goldenProperties, hierarchicalNamespace: true };
  if (process.env.STAMP_WRITE_GOLDEN) writeFileSync(golden3, encodeServiceProperties(hierarchical));
  const text = readFileSync(golden3, "utf8");
  assert.equal(encodeServiceProperties(hierarchical), text);
  assert.deepEqual(decodeServiceProperties(text), hierarchical);
  assert.match(text, /^\{"v":3,/);
});

test("cross-origin: origins by case, wildcards only for labels before a domain", () => {
  for (const [pattern, origin, fits] of [
    ["*", "https://any", true],
    ["https://a.example", "https://a.example", true],
    ["https://a.example", "https://A.example", false],
    ["https://a.example", "http://a.example", false],
    ["https://*.a.example", "https://x.y.a.example", true],
    ["https://*.a.example", "https://a.example", false],
    ["https://*.a.example", "https://.a.example", false],
    ["https://*.a.example", "https://evil.example/x.a.example", false],
    ["https://*.a.example", "https://evil.example#.a.example", false],
  ] as const) {
    assert.equal(originFits(pattern, origin), fits, `${pattern} ${origin}`);
  }
});

test("cross-origin: the first rule that fits answers; nothing else is said to anybody", () => {
  const rules: CorsRule[] = [
    {
      allowedOrigins: ["https://a.example"],
      allowedMethods: ["GET"],
      allowedHeaders: ["x-ms-meta-*"],
      exposedHeaders: ["etag"],
      maxAgeSeconds: 1,
    },
    { allowedOrigins: ["*"], allowedMethods: ["PUT"], allowedHeaders: ["*"], exposedHeaders: [], maxAgeSeconds: 2 },
  ];
  const ask = (origin: string, method: string, headers?: string): string => {
    const asked = {
      origin,
      "access-control-request-method": method,
      ...(headers === undefined ? {} : { "access-control-request-headers": headers }),
    };
    const answer = preflightHeaders(rules, asked);
    return answer.ok ? `${answer.value["Access-Control-Allow-Origin"]} ${answer.value["Access-Control-Max-Age"]}` : answer.error.code;
  };
  assert.equal(ask("https://a.example", "GET", "X-MS-Meta-a"), "https://a.example 1");
  assert.equal(ask("https://a.example", "GET", "x-ms-meta-a, other"), "CorsPreflightFailure");
  assert.equal(ask("https://b.example", "GET"), "CorsPreflightFailure");
  assert.equal(ask("https://b.example", "PUT", "anything"), "* 2");
  assert.equal(codeOf(preflightHeaders(rules, { origin: "https://a.example" })), "MissingRequiredHeader");
  assert.deepEqual(corsHeaders(rules, "GET", "https://b.example"), { Vary: "Origin" });
  assert.deepEqual(corsHeaders(rules, "DELETE", "https://b.example"), {});
  assert.deepEqual(corsHeaders(rules, "PUT", undefined), { "Access-Control-Allow-Origin": "*" });
  assert.deepEqual(corsHeaders([], "GET", "https://b.example"), {});
});

test("cross-origin: headers that scripts may read are named one by one, which is what browsers understand", () => {
  const answer = ["Server", "x-ms-version", "x-ms-meta-a", "ETag"];
  const exposed = (...exposedHeaders: string[]): string | undefined => {
    const rule = { allowedOrigins: ["*"], allowedMethods: ["GET"], allowedHeaders: [], exposedHeaders, maxAgeSeconds: 1 } as const;
    return corsHeaders([rule], "GET", "https://a.example", answer)["Access-Control-Expose-Headers"];
  };
  assert.equal(exposed("X-MS-Meta-*"), "x-ms-meta-a");
  assert.equal(exposed("x-ms-*", "x-ms-meta-*", "etag", "other"), "x-ms-version,x-ms-meta-a,etag,other");
  assert.equal(exposed("*"), "Server,x-ms-version,x-ms-meta-a,ETag,Content-Length");
  assert.equal(exposed("x-none-*"), undefined);
  assert.equal(exposed(), undefined);
});

test("fuzz: XML of any kind is a tree or an error, with bounds", () => {
  const noise = fc.array(
    fc.oneof(
      fc.constantFrom("<a>", "</a>", "<b/>", "&amp;", "&#65;", "&x;", "<![CDATA[x]]>", "<!--c-->", "<?p?>", "<!DOCTYPE a>"),
      fc.string({ unit: "binary", maxLength: 9 }),
    ),
    { maxLength: 20 },
  );
  fc.assert(
    fc.property(noise, (pieces) => {
      const body = utf8(`<r>${pieces.join("")}</r>`);
      for (const result of [parseXml(body, 1000), parseServiceProperties(body, "blob", defaultServiceProperties)]) {
        if (!result.ok) assert.ok(result.error.status < 500);
      }
    }),
    { numRuns: 1000 },
  );
  const deep = `${"<a>".repeat(100)}${"</a>".repeat(100)}`;
  assert.equal(codeOf(parseXml(utf8(deep), 10_000)), "InvalidXmlDocument");
  assert.equal(codeOf(parseXml(utf8(`<r>${"<a/>".repeat(20_000)}</r>`), 1_000_000)), "InvalidXmlDocument");
  assert.equal(codeOf(parseXml(utf8("<a/>"), 3)), "RequestBodyTooLarge");
  const text = parseXml(utf8("<a> x &lt;&#x41;&#66;<![CDATA[<y>]]> </a>"), 100);
  assert.equal(text.ok && text.value.text, " x <AB<y> ");
  const once = parseXml(utf8("<a><![CDATA[1 &gt; <b>&]]>\r\n<?p q?>&#38;gt;<!--c--></a>"), 100);
  assert.equal(
    once.ok && once.value.text,
    "1 &gt; <b>&\n&gt;",
    "a section is text as it stands, a reference is decoded once, lines end in LF",
  );
});
