/** A sealed extent on simulated nodes, and the calls that make, verify, repair and decode its fragments. For tests. */
import assert from "node:assert/strict";
import { concatBytes, type Outcome, type RuleName, unwrap } from "@stamp/base";
import { type Profile, profileOf } from "@stamp/erasure";
import { fragmentBytesOf, fragmentContentOffset } from "@stamp/extent";
import { ExtentFragments } from "@stamp/wire";
import { fragmentPath } from "../fragments/fragment-paths.ts";
import { Cluster, pattern, stampId } from "./harness.ts";

const timeoutMs = 60_000;
const nodeNames = (count: number): string[] => Array.from({ length: count }, (_, i) => `en-${i + 1}`);

/** An extent on the first three nodes, sealed, and what is to be made of it on all of them. */
export class Coding {
  readonly cluster: Cluster;
  readonly profile: Profile;
  readonly names: readonly string[];
  id = 0;
  content: Uint8Array = new Uint8Array(0);
  checksum = 0;

  constructor(seed: number, profileName: string, spare = 1, config: object = { scrubBytesPerSecond: 0 }, off: RuleName[] = []) {
    this.profile = profileOf(profileName) as Profile;
    this.names = nodeNames(this.profile.fragments + spare);
    this.cluster = new Cluster(seed, { nodes: this.names, config, off });
  }

  run(body: () => Promise<void>): Promise<void> {
    return this.cluster.run(async () => {
      for (const name of this.names) await this.cluster.ready(name);
      await this.#seal();
      await body();
    });
  }

  async #seal(): Promise<void> {
    const { cluster } = this;
    this.id = await cluster.create();
    let end = 0;
    for (let i = 0; i < 5; i++) end = Number(unwrap(await cluster.append("en-1", this.id, end, [pattern(400_000 + i, i)])).endBytes);
    for (const name of this.names.slice(0, 3)) this.checksum = unwrap(await cluster.seal(name, this.id, end)).checksum;
    await cluster.sim.sleep(1_000);
    const parts: Uint8Array[] = [];
    for (let at = 0; at < end; ) {
      const request = { extentId: BigInt(this.id), offsetBytes: BigInt(at), lengthBytes: 1 << 20 };
      const { payload } = unwrap(await cluster.node("en-1").readRaw(request, { timeoutMs }));
      parts.push(payload);
      at += payload.length;
    }
    this.content = concatBytes(parts);
    assert.equal(this.content.length, end);
  }

  calls(name: string) {
    return this.cluster.tester.transport.client(name, ExtentFragments);
  }

  get extent() {
    const { id, checksum, profile } = this;
    return { extentId: BigInt(id), profile: profile.name, sealedLengthBytes: BigInt(this.content.length), checksum };
  }

  get fragmentBytes(): number {
    return fragmentBytesOf(this.content.length, this.profile.data);
  }

  at(index: number, version = 3, name = this.names[index] as string) {
    return { index, version: BigInt(version), address: name, diskId: String(this.cluster.facts(name).diskId) };
  }

  all(version = 3) {
    return Array.from({ length: this.profile.fragments }, (_, index) => this.at(index, version));
  }

  make(from = "en-1", version = 3, smTerm = this.cluster.smTerm) {
    const diskId = String(this.cluster.facts(from).diskId);
    const request = { smTerm: BigInt(smTerm), extent: this.extent, targets: this.all(version), stampId, diskId };
    return this.calls(from).makeFragments(request, { timeoutMs });
  }

  verify(by = "en-3", fragments = this.all()) {
    return this.calls(by).verifyFragments({ smTerm: 1n, extent: this.extent, fragments }, { timeoutMs });
  }

  repair(target: ReturnType<Coding["at"]>, sources: ReturnType<Coding["all"]>) {
    return this.calls(target.address).repairFragment({ smTerm: 1n, extent: this.extent, target, sources, stampId }, { timeoutMs });
  }

  /** The content of a fragment as its node gives it. */
  async fragment({ index, version, address }: ReturnType<Coding["at"]>): Promise<Outcome<Uint8Array>> {
    const request = { extentId: BigInt(this.id), version, index, offsetBytes: 0n, lengthBytes: this.fragmentBytes };
    const answer = await this.calls(address).readFragment(request, { timeoutMs });
    return answer.ok ? { ok: true, value: answer.value.payload } : answer;
  }

  /** Returns the expected content of data fragment `index`. */
  expected(index: number): Uint8Array {
    const bytes = new Uint8Array(this.fragmentBytes);
    bytes.set(this.content.subarray(index * this.fragmentBytes, (index + 1) * this.fragmentBytes));
    return bytes;
  }

  held(name: string) {
    return this.calls(name).listFragments({}, { timeoutMs });
  }

  async heldCount(): Promise<number> {
    let count = 0;
    for (const name of this.names) if (this.cluster.sim.isUp(name)) count += unwrap(await this.held(name)).fragments.length;
    return count;
  }

  /** Asks a node to make a replica of these fragments. */
  decode(name: string, version: bigint, fragments = this.all(), id = this.id) {
    const diskId = String(this.cluster.facts(name).diskId);
    const common = { smTerm: 1n, extentId: BigInt(id), version, ownerEpoch: 1n, extent: this.extent, stampId, diskId };
    return this.calls(name).decodeExtent({ ...common, fragments }, { timeoutMs });
  }

  /** Returns the bytes of the replica on a node. */
  async raw(name: string): Promise<Uint8Array> {
    const parts: Uint8Array[] = [];
    for (let at = 0; at < this.content.length; at += parts.at(-1)?.length ?? 0) {
      const request = { extentId: BigInt(this.id), offsetBytes: BigInt(at), lengthBytes: 1 << 20 };
      parts.push(unwrap(await this.cluster.node(name).readRaw(request, { timeoutMs })).payload);
    }
    return concatBytes(parts);
  }

  /** Flips a bit in a chunk of a fragment, as a disk does. */
  rot(index: number, chunk: number, version = 3): void {
    const path = fragmentPath({ extentId: this.id as never, version: version as never, index });
    this.cluster.sim.disk(this.names[index] as string).corrupt(path, fragmentContentOffset(this.fragmentBytes) + chunk * 65_536 + 9);
  }
}
