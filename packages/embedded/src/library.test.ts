/** A stamp as a test suite uses it: emptied between tests, with roles that are paused and killed. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { test } from "node:test";
import { BlobServiceClient, type ContainerClient, ContainerSASPermissions, RestError } from "@azure/storage-blob";
import { type Stamp, type StampOptions, startStamp } from "./index.ts";

const service = ({ connectionString }: Stamp): BlobServiceClient =>
  BlobServiceClient.fromConnectionString(connectionString, { retryOptions: { maxTries: 1 } });

async function filled(stamp: Stamp, name = "kept"): Promise<ContainerClient> {
  const container = service(stamp).getContainerClient(name);
  await container.create();
  await container.getBlockBlobClient("blob").upload("hello", 5);
  return container;
}

const read = async (container: ContainerClient): Promise<string> => (await container.getBlobClient("blob").downloadToBuffer()).toString();

async function containers(stamp: Stamp): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of service(stamp).listContainers({ includeDeleted: true })) names.push(name);
  return names;
}

const kinds: readonly StampOptions[] = [{}, { replicas: 3 }, { storage: "disk" }];

for (const options of kinds) {
  test(`library: a reset leaves nothing of before, at the same endpoints: ${JSON.stringify(options)}`, async () => {
    await using stamp = await startStamp(options);
    const { connectionString } = stamp;
    await filled(stamp);
    await stamp.setBlobSettings({ versioning: true, containerDeleteRetentionDays: 7 });
    await stamp.createEncryptionScope("scope");
    await service(stamp).getContainerClient("kept").delete();
    assert.deepEqual(await containers(stamp), ["kept"]);
    await stamp.reset();
    assert.equal(stamp.connectionString, connectionString);
    assert.deepEqual(await containers(stamp), []);
    const container = await filled(stamp);
    const { versionId } = await container.getBlobClient("blob").getProperties();
    assert.equal(versionId, undefined);
    await stamp.createEncryptionScope("scope");
    await stamp.reset();
    assert.deepEqual(await containers(stamp), []);
  });

  test(`library: what was acknowledged outlives each role that is killed: ${JSON.stringify(options)}`, { timeout: 300_000 }, async () => {
    await using stamp = await startStamp(options);
    const container = await filled(stamp);
    assert.deepEqual([...new Set(stamp.roles.map((name) => name.replace(/-\d$/, "")))], roleNames);
    for (const role of stamp.roles) {
      await stamp.kill(role);
      await stamp.start(role);
      assert.equal(await untilRead(container), "hello", role);
      await container.getBlockBlobClient(`after-${role}`).upload("x", 1);
    }
  });
}

const uploadingBytes = (stamp: Stamp): number =>
  Number(/^stamp_front_end_upload_buffer_bytes(?:\{[^}]*\})? (\d+)$/m.exec(stamp.metrics()["front-end-1"] ?? "")?.[1]);

const roleNames = ["lock-service", "extent-node", "stream-manager", "partition-manager", "partition-server", "front-end"];

/** A role that is back takes its lease again before its requests are served. */
async function untilRead(container: ContainerClient): Promise<string> {
  for (;;) {
    try {
      return await read(container);
    } catch (error) {
      if (!(error instanceof RestError) || error.statusCode === 404) throw error;
    }
  }
}

test("library: a paused role answers when it goes on, and nothing is lost", async () => {
  await using stamp = await startStamp();
  const container = await filled(stamp);
  for (const role of ["partition-server-1", "front-end-1", "extent-node-1"]) {
    await stamp.pause(role);
    let isPaused = true;
    const resumed = async (): Promise<void> => {
      await new Promise((resolve) => setTimeout(resolve, 100));
      isPaused = false;
      await stamp.resume(role);
    };
    const written = container
      .getBlockBlobClient(role)
      .upload("late", 4)
      .then(() => assert.equal(isPaused, false, role));
    await Promise.all([written, resumed()]);
    assert.equal((await container.getBlobClient(role).downloadToBuffer()).toString(), "late", role);
  }
});

test("library: while the front-end is down its ports refuse; a reset brings back what was killed or paused", async () => {
  await using stamp = await startStamp();
  await filled(stamp);
  await stamp.kill("front-end-1");
  await assert.rejects(fetch(stamp.endpoints.blob), (error: Error) => /ECONNREFUSED/.test(String(error.cause)));
  assert.deepEqual(Object.keys(stamp.metrics()).length, stamp.roles.length - 1);
  await stamp.kill("lock-service-1");
  await stamp.pause("partition-server-1");
  await stamp.reset();
  assert.deepEqual(await containers(stamp), []);
  await filled(stamp);
});

test("library: while a reset makes files anew, no request is answered by a stamp without accounts", async () => {
  await using stamp = await startStamp({ storage: "disk" });
  let isReset = false;
  const answers = new Set<unknown>();
  const ask = async (): Promise<void> => {
    while (!isReset) {
      await service(stamp)
        .getProperties()
        .catch((error: unknown) => answers.add((error as RestError).statusCode));
    }
  };
  const reset = async (): Promise<void> => {
    await stamp.reset();
    isReset = true;
  };
  await Promise.all([ask(), reset()]);
  assert.deepEqual([...answers], [undefined]);
  await filled(stamp);
});

test("library: a request that a reset or a kill meets ends with a broken connection", async () => {
  await using stamp = await startStamp();
  const container = await filled(stamp);
  await stamp.pause("extent-node-1");
  const resetWhenMet = async (): Promise<void> => {
    while (uploadingBytes(stamp) === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    await stamp.reset();
  };
  const late = container.getBlockBlobClient("late").upload(Buffer.alloc(4_000_000), 4_000_000);
  await Promise.all([assert.rejects(late, { code: "ECONNRESET" }), resetWhenMet()]);

  const large = (await filled(stamp)).getBlockBlobClient("large");
  await large.uploadData(Buffer.alloc(32 * 1024 * 1024, "stamp"));
  const expiresOn = new Date(Date.now() + 3_600_000);
  const url = await service(stamp)
    .getContainerClient("kept")
    .generateSasUrl({ permissions: ContainerSASPermissions.parse("r"), expiresOn });
  // The client does not read, so that the answer is under way.
  const request = get(url.replace("/kept?", "/kept/large?"));
  const [answer] = (await once(request, "response")) as [IncomingMessage];
  request.on("error", () => {});
  const killed = async (): Promise<void> => {
    await stamp.kill("front-end-1");
    answer.resume();
  };
  await Promise.all([assert.rejects(once(answer, "end"), { code: "ECONNRESET" }), killed()]);
});

test("library: wrong names, and changes that the state of a role does not allow, are refused with a hint", async () => {
  const stamp = await startStamp();
  await assert.rejects(stamp.kill("partition-server"), /there is no role partition-server; there are: lock-service-1, extent-node-1, /);
  await assert.rejects(stamp.start("front-end-1"), /can't start front-end-1: it is running, not down/);
  await assert.rejects(stamp.resume("front-end-1"), /it is running, not paused/);
  await stamp.kill("front-end-1");
  await assert.rejects(stamp.pause("front-end-1"), /it is down, not running/);
  await Promise.all([stamp.stop(), stamp.stop()]);
  await assert.rejects(stamp.reset(), /the stamp is stopped/);
});

test("library: a partition server that was paused beyond its lease serves again", { timeout: 120_000 }, async () => {
  await using stamp = await startStamp();
  const container = await filled(stamp);
  await stamp.pause("partition-server-1");
  await new Promise((resolve) => setTimeout(resolve, 7_000));
  await stamp.resume("partition-server-1");
  assert.equal(await untilRead(container), "hello");
});

test("library: a resume does not wait for the start that waits for it; settings wait for the reset before them", async () => {
  await using stamp = await startStamp();
  await stamp.kill("partition-server-1");
  await stamp.pause("lock-service-1");
  await Promise.all([stamp.start("partition-server-1"), stamp.resume("lock-service-1")]);
  await Promise.all([stamp.reset(), stamp.setBlobSettings({ versioning: true })]);
  const { versionId } = await (await filled(stamp)).getBlobClient("blob").getProperties();
  assert.notEqual(versionId, undefined);
});
