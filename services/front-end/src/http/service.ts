/** A service: the part of the REST API that the door (door.ts) serves on one port. */
import type {
  HttpHeaders,
  OperationAuthorization,
  Parsed,
  RestError,
  ServiceName,
  SignedIdentifier,
  SignedResource,
  Target,
} from "@stamp/azure-rest";
import type { Objects } from "../objects/objects.ts";
import type { CallLimits } from "../routing/router.ts";
import type { Answer, Exchange } from "./exchange.ts";

export interface RestService {
  readonly name: ServiceName;
  /** Name in the Server header. */
  readonly serverName: string;
  /** Suffixes of host names whose first label is the account. */
  readonly hostSuffixes: readonly string[];
  /** Settles which of two names a path has, if it may have two; asked before anything that needs the name. `signed`: by key, SAS or token. */
  named?(objects: Objects, target: Target, signed: boolean, limits: CallLimits): Promise<Parsed<Target>>;
  /** Returns the resource in the path, for the signature of a service SAS; looked at before the operation is known. */
  resource(target: Target, headers: HttpHeaders): Parsed<SignedResource>;
  /** The stored access policies of a container, queue or table. */
  storedPolicies(
    objects: Objects,
    account: string,
    resource: SignedResource,
    limits: CallLimits,
  ): Promise<Parsed<readonly SignedIdentifier[]>>;
  /** Refuses a request that is another service's, whoever asks and whatever the account. */
  refuse?(method: string, target: Target, headers: HttpHeaders): RestError | undefined;
  /** Recognizes the operation by method, target and headers; refuses whatever can be refused without asking anybody. */
  recognize(method: string, target: Target, headers: HttpHeaders): Parsed<RecognizedOperation>;
  /** Returns the text behind the status of an error; absent: HTTP's. */
  readonly reasonPhrase?: (error: RestError) => string;
  /** Returns the body of an error, in the form that the request asks for. */
  errorBody(error: RestError, about: ErrorAbout): { readonly contentType: string; readonly text: string };
}

export interface RecognizedOperation {
  /** Name in the REST reference, in one word: PutBlob. */
  readonly name: string;
  /** Needs of this request from callers without an account key. */
  readonly authorization: OperationAuthorization;
  serve(exchange: Exchange): Promise<Answer>;
}

export interface ErrorAbout {
  readonly requestId: string;
  readonly nowMs: number;
  readonly headers: HttpHeaders;
}
