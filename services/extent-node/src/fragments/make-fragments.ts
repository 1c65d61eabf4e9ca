/**
 * Makes all fragments of an extent from a replica on this node. Stripe by stripe: the same range of every data fragment is read, the coding
 * fragments are computed, and each target is sent its part. What was read is measured as well (rule `makersMeasureReplicas`): if the replica is
 * not what the extent's checksum says, no fragment is finished, and the replica is damaged.
 */
import { type Outcome, ok, refused } from "@stamp/base";
import { encodePlan, Kernel, type Profile } from "@stamp/erasure";
import { combineCrc32c } from "@stamp/extent";
import { DiskError, uuid } from "@stamp/ports";
import { ExtentFragments, type MakeFragmentsRequest, toWire, type WriteFragmentRequest } from "@stamp/wire";
import { findOf } from "../creations.ts";
import { repairIo } from "../disk/disk-queue.ts";
import type { LocalExtent } from "../disk/local-extent.ts";
import { type Node, unknownExtent } from "../node.ts";
import { admitRequest, type CodedDescription, codedOf, type FragmentAt, fragmentsOf, jobName } from "./fragment-requests.ts";
import { PacedSteps, stripeBytes } from "./fragment-sources.ts";
import { writeFragment } from "./write-fragment.ts";

const writeTimeoutMs = 10_000;

type Made = { readonly fragmentChecksums: number[] };

export async function makeFragments(node: Node, request: MakeFragmentsRequest): Promise<Outcome<Made>> {
  const coded = codedOf(request.extent);
  const targets = fragmentsOf(coded, request.targets);
  const { creation = 0, extentId: id, sealedLengthBytes } = coded.extent;
  if (targets.length !== coded.profile.fragments)
    return refused(
      "invalidArgument",
      "badRequest",
      `${coded.profile.name} has ${coded.profile.fragments} fragments, not ${targets.length}`,
    );
  const admitted = await admitRequest(node, request);
  if (!admitted.ok) return admitted;
  const extent = findOf(node, id, { creation: toWire(creation) });
  if (extent === undefined) return unknownExtent(id);
  const { replica } = extent;
  if (replica.state === "damaged") return refused("dataLoss", "damaged", `extent ${id} is damaged here: ${replica.damage}`);
  if (replica.state !== "sealed" || replica.sealedLengthBytes !== sealedLengthBytes)
    return refused("failedPrecondition", "extentStale", `extent ${id} is ${replica.state} here, at ${replica.durableBytes}`);
  return node.fragmentJobs.run(jobName("make", coded, targets), () => new Maker(node, extent, coded, targets, request).run());
}

class Maker {
  readonly #node: Node;
  readonly #extent: LocalExtent;
  readonly #coded: CodedDescription;
  readonly #profile: Profile;
  readonly #targets: readonly FragmentAt[];
  readonly #request: MakeFragmentsRequest;
  readonly #maker: string;
  readonly #kernel: Kernel;
  /** crc32c and length of what was read of each data fragment. */
  readonly #read: { checksum: number; bytes: number }[];
  /** crc32c of what was sent of each fragment. */
  readonly #sent: number[];

  constructor(node: Node, extent: LocalExtent, coded: CodedDescription, targets: readonly FragmentAt[], request: MakeFragmentsRequest) {
    this.#node = node;
    this.#extent = extent;
    this.#coded = coded;
    this.#profile = coded.profile;
    this.#targets = targets;
    this.#request = request;
    this.#maker = uuid(node.world.random);
    this.#kernel = new Kernel(coded.profile.fragments, stripeBytes);
    this.#sent = new Array<number>(coded.profile.fragments).fill(0);
    this.#read = Array.from({ length: coded.profile.data }, () => ({ checksum: 0, bytes: 0 }));
  }

  async run(): Promise<Outcome<Made>> {
    const { fragmentBytes } = this.#coded.extent;
    const steps = new PacedSteps(this.#node);
    for (let at = 0; at < fragmentBytes; at += stripeBytes) {
      const bytes = Math.min(stripeBytes, fragmentBytes - at);
      const done = await steps.step(bytes * this.#profile.data, () => this.#stripe(at, bytes));
      if (!done.ok) return done;
    }
    return ok({ fragmentChecksums: this.#sent });
  }

  async #stripe(at: number, bytes: number): Promise<Outcome<void>> {
    const { fragmentBytes } = this.#coded.extent;
    for (let index = 0; index < this.#profile.data; index++) {
      const filled = await this.#fill(index, at, bytes);
      if (!filled.ok) return filled;
    }
    const isLast = at + bytes === fragmentBytes;
    if (isLast) {
      const measured = await this.#compare();
      if (!measured.ok) return measured;
    }
    this.#kernel.run(encodePlan(this.#profile), (index) => index, bytes);
    const written = await Promise.all(this.#targets.map((target) => this.#send(target, at, bytes, isLast)));
    return written.find((each) => !each.ok) ?? ok();
  }

  /** Reads a part of a data fragment into its lane: bytes of the replica, and zeros beyond the end. */
  async #fill(index: number, at: number, bytes: number): Promise<Outcome<void>> {
    const { fragmentBytes, sealedLengthBytes, extentId: id } = this.#coded.extent;
    const lane = this.#kernel.lane(index).subarray(0, bytes);
    const from = index * fragmentBytes + at;
    const wanted = Math.min(bytes, Math.max(0, sealedLengthBytes - from));
    let filled = 0;
    const slices = wanted === 0 ? [] : await this.#bytes(from, wanted);
    const read = this.#read[index] as { checksum: number; bytes: number };
    for (const slice of slices) {
      if (filled + slice.length > wanted) break;
      lane.set(slice, filled);
      filled += slice.length;
    }
    if (!this.#isStill()) return refused("aborted", "conflict", `extent ${id} was changed while its fragments were made`);
    if (filled < wanted) {
      await this.#node.markDamaged(this.#extent, `it ends at ${from + filled}, found when fragments were made`);
      return refused("dataLoss", "damaged", `extent ${id} is damaged here: it ends at ${from + filled}`);
    }
    lane.fill(0, wanted);
    read.checksum = this.#node.world.digest.crc32c(lane.subarray(0, wanted), read.checksum);
    read.bytes += wanted;
    return ok();
  }

  /** Reads bytes; returns fewer if the disk can't give them. */
  async #bytes(offsetBytes: number, lengthBytes: number): Promise<readonly Uint8Array[]> {
    try {
      return await this.#node.store.read(this.#extent, offsetBytes, lengthBytes, repairIo);
    } catch (error) {
      // Anything else says nothing about the data.
      if (error instanceof DiskError && (error.kind === "io" || error.kind === "notFound")) return [];
      throw error;
    }
  }

  async #compare(): Promise<Outcome<void>> {
    const { contentChecksum, extentId: id } = this.#coded.extent;
    const checksum = this.#read.reduce((sum, { checksum: next, bytes }) => combineCrc32c(sum, next, bytes), 0);
    if (checksum === contentChecksum || !this.#node.world.rules.on("makersMeasureReplicas")) return ok();
    const why = `its content has checksum ${checksum}, recorded is ${contentChecksum}, found when fragments were made`;
    await this.#node.markDamaged(this.#extent, why);
    return refused("dataLoss", "damaged", `extent ${id} is damaged here: ${why}`);
  }

  #isStill(): boolean {
    const { replica, removed } = this.#extent;
    return !removed && replica.state === "sealed" && this.#node.find(replica.extentId) === this.#extent;
  }

  async #send(target: FragmentAt, at: number, bytes: number, last: boolean): Promise<Outcome<unknown>> {
    const { digest, transport } = this.#node.world;
    // A copy: the lane is filled again while a late receiver may still hold the message.
    const payload = this.#kernel.lane(target.index).slice(0, bytes);
    this.#sent[target.index] = digest.crc32c(payload, this.#sent[target.index]);
    const request = {
      smTerm: this.#request.smTerm,
      extent: this.#request.extent,
      index: target.index,
      version: toWire(target.version),
      stampId: this.#request.stampId,
      diskId: target.diskId,
      maker: this.#maker,
      offsetBytes: toWire(at),
      payloadChecksum: digest.crc32c(payload),
      last,
      payload,
    } as WriteFragmentRequest;
    if (target.address === this.#node.address) return writeFragment(this.#node, request);
    return transport.client(target.address, ExtentFragments).writeFragment(request, { timeoutMs: writeTimeoutMs });
  }
}
