/**
 * A whole stamp in one container, for tests. It is started when the image's health check says that all its processes serve. Its data are in
 * the container and end with it.
 */
import { AbstractStartedContainer, GenericContainer, type StartedTestContainer, Wait } from "testcontainers";

/** Ports of the services inside of the container. */
const ports = { blob: 10_000, queue: 10_001, table: 10_002, dfs: 10_004 };

type Service = keyof typeof ports;

/** The account of every emulator; its key is public. */
const developmentAccount = {
  name: "devstoreaccount1",
  key: "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==",
};

export class StampContainer extends GenericContainer {
  #account = developmentAccount;

  /** `image`: name of an image of the project's Dockerfile, or of `./stamp release`. */
  constructor(image: string) {
    super(image);
    this.withExposedPorts(...Object.values(ports))
      .withWaitStrategy(Wait.forHealthCheck())
      .withStartupTimeout(120_000);
  }

  /** Serves this account and no other. `key`: in base64. Default: devstoreaccount1 with its public key. */
  withAccount(name: string, key: string): this {
    this.#account = { name, key };
    return this.withEnvironment({ STAMP_ACCOUNTS: JSON.stringify([{ name, keys: [key] }]) });
  }

  override async start(): Promise<StartedStampContainer> {
    return new StartedStampContainer(await super.start(), this.#account);
  }
}

export class StartedStampContainer extends AbstractStartedContainer {
  /** Name and key of the account that is served. */
  readonly account: { readonly name: string; readonly key: string };

  constructor(started: StartedTestContainer, account: { readonly name: string; readonly key: string }) {
    super(started);
    this.account = account;
  }

  /** URLs of the account at each service, from this machine. They change when the container restarts. */
  get endpoints(): Readonly<Record<Service, string>> {
    const at = (service: Service): string => `http://${this.getHost()}:${this.getMappedPort(ports[service])}/${this.account.name}`;
    return { blob: at("blob"), queue: at("queue"), table: at("table"), dfs: at("dfs") };
  }

  /** Connection string for `fromConnectionString` of the SDKs' clients. */
  get connectionString(): string {
    const { blob, queue, table } = this.endpoints;
    const { name, key } = this.account;
    return `DefaultEndpointsProtocol=http;AccountName=${name};AccountKey=${key};BlobEndpoint=${blob};QueueEndpoint=${queue};TableEndpoint=${table};`;
  }
}
