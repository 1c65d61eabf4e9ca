/**
 * A key is rotated and public access is switched off at the primary: when the command says that it is done, every way to read the copy that
 * counted on them is refused there: the key itself, SAS of an account and of a blob, no signature at all. The other key goes on.
 */
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import {
  AccountSASPermissions,
  AnonymousCredential,
  BlobSASPermissions,
  BlobServiceClient,
  generateAccountSASQueryParameters,
  generateBlobSASQueryParameters,
  SASProtocol,
  StorageSharedKeyCredential,
} from "@azure/storage-blob";
import { isComplete, type TwoStamps, untilCopy } from "../testing/two-stamps.ts";

const account = "settled";
const once = { retryOptions: { maxTries: 1 } };

export async function settingsAreInForce(_t: TestContext, two: TwoStamps): Promise<void> {
  const { portBase, ok } = two;
  const north = ["--data", `${two.data}/north-1`];
  const { keys } = JSON.parse(await ok("account", "create", account, "--location", "north", "--geo", "south", "--json"));
  const [first, second] = (keys as string[]).map((key) => new StorageSharedKeyCredential(account, key));
  assert.ok(first && second);
  const here = new BlobServiceClient(`http://127.0.0.1:${portBase}/${account}`, second).getContainerClient("things");
  await here.create({ access: "blob" });
  await here.getBlockBlobClient("one").upload("text", 4);
  await untilCopy(two, account, "a complete copy", isComplete);

  const expiresOn = new Date(Date.now() + 3_600_000);
  const forAccount = generateAccountSASQueryParameters(
    {
      permissions: AccountSASPermissions.parse("rl"),
      services: "b",
      resourceTypes: "sco",
      protocol: SASProtocol.HttpsAndHttp,
      expiresOn,
    },
    first,
  );
  const forBlob = generateBlobSASQueryParameters(
    { containerName: "things", blobName: "one", permissions: BlobSASPermissions.parse("r"), expiresOn },
    first,
  );
  const there = `http://127.0.0.1:${portBase + 300}/${account}-secondary`;
  const statusOf = async (credential: StorageSharedKeyCredential | AnonymousCredential, query: unknown = ""): Promise<number> => {
    const blob = new BlobServiceClient(`${there}?${query}`, credential, once).getContainerClient("things").getBlobClient("one");
    return blob.downloadToBuffer().then(
      (bytes) => (bytes.toString() === "text" ? 200 : 0),
      ({ statusCode }) => statusCode,
    );
  };
  const nobody = new AnonymousCredential();
  const statuses = async (): Promise<Record<string, number>> => ({
    rotated: await statusOf(first),
    accountSas: await statusOf(nobody, forAccount),
    blobSas: await statusOf(nobody, forBlob),
    anonymous: await statusOf(nobody),
    other: await statusOf(second),
  });
  assert.deepEqual(await statuses(), { rotated: 200, accountSas: 200, blobSas: 200, anonymous: 200, other: 200 });
  await ok("account", "rotate-key", account, "1", ...north);
  assert.deepEqual(await statuses(), { rotated: 403, accountSas: 403, blobSas: 403, anonymous: 200, other: 200 });
  await ok("account", "set", account, "--public-access", "off", ...north);
  const { anonymous, other } = await statuses();
  assert.deepEqual([anonymous, other], [409, 200]);
}
