/** Every XML body of the three services in every form of XML 1.0 (xml-forms.ts): each form stores the same. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { bearerHeaders, secondsFromNow } from "./delegation.ts";
import { blockId, type Clients } from "./target.ts";
import { anyText, type XmlNode, xmlText, xmlWritings } from "./xml-forms.ts";

/**
 * Sends the document in every form, and compares what a read shows afterwards. Before each, `clear` takes the earlier one away.
 * `shows` is a part of the answer that only this content has.
 */
async function eachForm(
  clients: Clients,
  root: XmlNode,
  at: {
    readonly path: string;
    readonly method?: string;
    readonly status: number;
    readonly clear: Uint8Array | string;
    readonly shows: string;
  },
): Promise<void> {
  const read = async (): Promise<string> => (await clients.raw("GET", at.path)).text();
  const set = (body: Uint8Array | string): Promise<Response> =>
    clients.raw(at.method ?? "PUT", at.path, { body, headers: { "content-type": "application/xml" } });
  let first: string | undefined;
  for (const [form, body] of xmlWritings(root)) {
    assert.equal((await set(at.clear)).status, at.status);
    assert.ok(!(await read()).includes(at.shows), form);
    const answer = await set(body);
    assert.equal(answer.status, at.status, `${form}: ${await answer.text()}`);
    const shown = await read();
    assert.ok(shown.includes(at.shows), `${form}: ${shown}`);
    first ??= shown;
    assert.equal(shown, first, form);
  }
}

const retention: XmlNode = ["RetentionPolicy", [["Enabled", "false"]]];
const cors: XmlNode = [
  "Cors",
  [
    [
      "CorsRule",
      [
        ["AllowedOrigins", "http://a.example,http://b.example"],
        ["AllowedMethods", "GET,PUT"],
        ["MaxAgeInSeconds", "61"],
        ["ExposedHeaders", "x-ms-*,a&b"],
        ["AllowedHeaders", ""],
      ],
    ],
  ],
];
const logging: XmlNode = ["Logging", [["Version", "1.0"], ["Delete", "false"], ["Read", "false"], ["Write", "false"], retention]];

/** Bodies that every service has: stored access policies of what `acl` names, the service's properties, a user delegation key. */
export function sharedXmlBodies(
  clients: () => Clients,
  acl: () => Promise<string>,
  permissions: string,
  more: readonly XmlNode[] = [],
): void {
  test("stored access policies in every form of XML", async () => {
    const policy: XmlNode = [
      "AccessPolicy",
      [
        ["Start", "2026-01-02T03:04:05Z"],
        ["Expiry", "2026-02-02T03:04:05Z"],
        ["Permission", permissions],
      ],
    ];
    const one = (id: string): XmlNode => ["SignedIdentifier", [["Id", id], policy]];
    await eachForm(clients(), ["SignedIdentifiers", [one(anyText), one("2")]], {
      path: await acl(),
      status: (await acl()).includes("restype=container") ? 200 : 204,
      clear: "<SignedIdentifiers/>",
      shows: `<Id>${xmlText(anyText)}</Id>`,
    });
  });

  test("service properties in every form of XML", async () => {
    await eachForm(clients(), ["StorageServiceProperties", [logging, cors, ...more]], {
      path: "/?restype=service&comp=properties",
      status: 202,
      clear: "<StorageServiceProperties><Cors/></StorageServiceProperties>",
      shows: "<ExposedHeaders>x-ms-*,a&amp;b</ExposedHeaders>",
    });
    const cleared = "<StorageServiceProperties><Cors/></StorageServiceProperties>";
    const headers = { "content-type": "application/xml" };
    assert.equal((await clients().raw("PUT", "/?restype=service&comp=properties", { body: cleared, headers })).status, 202);
  });

  test("a user delegation key in every form of XML", async () => {
    const headers = { ...(await bearerHeaders(clients(), "readers")), "content-type": "application/xml" };
    const [start, expiry] = [-60, 600].map((seconds) => secondsFromNow(seconds).toISOString().replace(".000Z", "Z"));
    const root: XmlNode = [
      "KeyInfo",
      [
        ["Start", start as string],
        ["Expiry", expiry as string],
      ],
    ];
    const keys = new Set<string>();
    for (const [form, body] of xmlWritings(root)) {
      const answer = await clients().raw("POST", "/?restype=service&comp=userdelegationkey", { sign: false, body, headers });
      const text = await answer.text();
      assert.equal(answer.status, 200, `${form}: ${text}`);
      assert.ok(text.includes(`<SignedStart>${start}</SignedStart><SignedExpiry>${expiry}</SignedExpiry>`), `${form}: ${text}`);
      keys.add(text.slice(text.indexOf("<Value>")));
    }
    assert.equal(keys.size, 1);
  });
}

export function xmlBodySuite(clients: () => Clients): void {
  describe("XML bodies", () => {
    sharedXmlBodies(clients, async () => `/${(await clients().container()).containerName}?restype=container&comp=acl`, "rwd", [
      ["DeleteRetentionPolicy", [["Enabled", "false"]]],
      [
        "StaticWebsite",
        [
          ["Enabled", "true"],
          ["IndexDocument", "a&b é.html"],
        ],
      ],
    ]);

    test("tags in every form of XML", async () => {
      const container = await clients().container();
      await container.getBlockBlobClient("b").upload("1", 1);
      const tag = (key: string, value: string): XmlNode => [
        "Tag",
        [
          ["Key", key],
          ["Value", value],
        ],
      ];
      await eachForm(clients(), ["Tags", [["TagSet", [tag(" k =1 ", "x/y:z= "), tag("2", "")]]]], {
        path: `/${container.containerName}/b?comp=tags`,
        status: 204,
        clear: "<Tags><TagSet/></Tags>",
        shows: "<Key> k =1 </Key><Value>x/y:z= </Value>",
      });
    });

    test("a block list in every form of XML", async () => {
      const container = await clients().container();
      const ids = [
        blockId(1),
        Buffer.from("block-00000a").toString("base64"),
        Buffer.from("block-0000\xff\xfe", "latin1").toString("base64"),
      ];
      const root: XmlNode = [
        "BlockList",
        [
          ["Uncommitted", ids[1] as string],
          ["Latest", ids[2] as string],
          ["Latest", ids[0] as string],
        ],
      ];
      for (const [form, body] of xmlWritings(root)) {
        const blob = container.getBlockBlobClient(form);
        for (const [at, id] of ids.entries()) await blob.stageBlock(id, String(at), 1);
        const path = `/${container.containerName}/${encodeURIComponent(form)}?comp=blocklist`;
        const answer = await clients().raw("PUT", path, { body });
        assert.equal(answer.status, 201, `${form}: ${await answer.text()}`);
        assert.equal((await blob.downloadToBuffer()).toString(), "120", form);
      }
    });

    test("a body with an element that stands twice, or a text beside elements, is refused and changes nothing", async () => {
      const container = await clients().container();
      await container.getBlockBlobClient("b").upload("1", 1, { tags: { kept: "1" } });
      const tags = `/${container.containerName}/b?comp=tags`;
      const acl = `/${container.containerName}?restype=container&comp=acl`;
      const properties = "/?restype=service&comp=properties";
      const tag = (inside: string): string => `<Tags><TagSet><Tag>${inside}</Tag></TagSet></Tags>`;
      const policy = (inside: string): string =>
        `<SignedIdentifiers><SignedIdentifier><Id>1</Id>${inside}</SignedIdentifier></SignedIdentifiers>`;
      const before = await (await clients().raw("GET", properties)).text();
      for (const [path, body] of [
        [tags, tag("<Key>a</Key><Value>1</Value><Value>2</Value>")],
        [tags, tag("<Key>a</Key><Value>1</Value>2")],
        [acl, policy("<AccessPolicy><Permission>r</Permission></AccessPolicy><AccessPolicy/>")],
        [acl, policy("<AccessPolicy><Permission>r</Permission><Permission>w</Permission></AccessPolicy>")],
        [properties, "<StorageServiceProperties><Cors/><Cors/></StorageServiceProperties>"],
        [
          properties,
          "<StorageServiceProperties><StaticWebsite><Enabled>true</Enabled><IndexDocument>a</IndexDocument><IndexDocument>b</IndexDocument>" +
            "</StaticWebsite></StorageServiceProperties>",
        ],
      ] as const) {
        const answer = await clients().raw("PUT", path, { body });
        assert.deepEqual([answer.status, answer.headers.get("x-ms-error-code")], [400, "InvalidXmlDocument"], body);
      }
      assert.ok((await (await clients().raw("GET", tags)).text()).includes("<Key>kept</Key><Value>1</Value>"));
      assert.ok(!(await (await clients().raw("GET", acl)).text()).includes("<Id>"));
      assert.equal(await (await clients().raw("GET", properties)).text(), before);
    });

    test("Query Blob Contents is refused with its name, whatever the form of its body", async () => {
      const container = await clients().container();
      await container.getBlockBlobClient("b").upload("1", 1);
      const path = `/${container.containerName}/b?comp=query`;
      for (const [form, body] of xmlWritings([
        "QueryRequest",
        [
          ["QueryType", "SQL"],
          ["Expression", "SELECT * FROM BlobStorage"],
        ],
      ])) {
        const answer = await clients().raw("POST", path, { body });
        assert.deepEqual([answer.status, answer.headers.get("x-ms-error-code")], [501, "NotImplemented"], form);
        assert.ok((await answer.text()).includes("Query Blob Contents"), form);
      }
    });
  });
}
