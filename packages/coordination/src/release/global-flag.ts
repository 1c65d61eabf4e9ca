/** A flag that all processes see (article "Synchronizing multiple nodes", IGlobalFlag). */
import type { BlockBlobClient, ContainerClient } from "@azure/storage-blob";
import { isMissing } from "../storage/classify.ts";
import { inContainer } from "../storage/create.ts";

export interface GlobalFlag {
  /** Name of the flag's place, for messages. */
  readonly name: string;
  isSet(signal?: AbortSignal): Promise<boolean>;
  set(signal?: AbortSignal): Promise<void>;
  clear(signal?: AbortSignal): Promise<void>;
}

/** The flag is set while its blob exists, whatever the blob holds. `set` creates the container when it is missing. */
export class BlobGlobalFlag implements GlobalFlag {
  readonly name: string;
  readonly #container: ContainerClient;
  readonly #blob: BlockBlobClient;

  constructor(container: ContainerClient, blobName: string) {
    this.#container = container;
    this.#blob = container.getBlockBlobClient(blobName);
    this.name = `flag ${container.containerName}/${blobName}`;
  }

  async isSet(signal?: AbortSignal): Promise<boolean> {
    try {
      await this.#blob.getProperties(signal === undefined ? {} : { abortSignal: signal });
      return true;
    } catch (error) {
      if (isMissing(error)) return false;
      throw error;
    }
  }

  async set(signal: AbortSignal = new AbortController().signal): Promise<void> {
    await inContainer(this.#container, signal, () => this.#blob.upload("Set", 3, { abortSignal: signal }));
  }

  async clear(signal?: AbortSignal): Promise<void> {
    try {
      await this.#blob.delete(signal === undefined ? {} : { abortSignal: signal });
    } catch (error) {
      if (!isMissing(error)) throw error;
    }
  }
}
