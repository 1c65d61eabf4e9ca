/** A program under test: notes in a container, which it makes with the first note. */
import { BlobServiceClient } from "@azure/storage-blob";

export class Notes {
  constructor(connectionString) {
    this.container = BlobServiceClient.fromConnectionString(connectionString).getContainerClient("notes");
  }

  async add(name, text) {
    await this.container.createIfNotExists();
    await this.container.getBlockBlobClient(name).upload(text, Buffer.byteLength(text));
  }

  async read(name) {
    return (await this.container.getBlobClient(name).downloadToBuffer()).toString();
  }

  async names() {
    const names = [];
    if (!(await this.container.exists())) return names;
    for await (const { name } of this.container.listBlobsFlat()) names.push(name);
    return names;
  }
}
