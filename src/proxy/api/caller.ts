import { createHmac, randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import {
  credentialOf,
  hasCredential,
  ownerOf,
  ownerOfClient,
  removeCredential,
} from '../../checkpoint/owner.ts';
import type { Owner } from '../../checkpoint/store.ts';
import type { ClientConfiguration, Configuration } from '../../config/configuration.ts';
import { type ApiError, apiError } from '../../lib/errors.ts';
import type { RouteUse } from '../upstream/route-table.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Of every request that has a route, from before its body is read. */
    caller: Caller;
  }
}

const DIGEST_KEY_BYTES = 32;

interface KnownClient {
  readonly configuration: ClientConfiguration;
  readonly owner: Owner;
}

/** Tells by its credential whom a request is from. */
export class Callers {
  readonly #secret: string;
  readonly #digestKey = randomBytes(DIGEST_KEY_BYTES);
  /** By the digest of the token: how long a look-up takes says nothing about a token, for nobody can choose its digest. */
  readonly #clients: ReadonlyMap<string, KnownClient>;
  readonly #needsClient: boolean;

  constructor({ clients, upstreams }: Pick<Configuration, 'clients' | 'upstreams'>, secret: string) {
    this.#secret = secret;
    this.#clients = new Map(
      clients.map((configuration) => [
        this.#digest(configuration.token),
        { configuration, owner: ownerOfClient(secret, configuration.name) },
      ]),
    );
    const isKeyed = Object.values(upstreams).every(({ api_key }) => api_key !== undefined);
    this.#needsClient = clients.length > 0 && isKeyed;
  }

  /**
   * Removes the token of a client from `headers`: it is for us alone. Throws `unknown_client` where nothing is served
   * without one, and `conflicting_credentials`.
   */
  identify(headers: IncomingHttpHeaders): Caller {
    if (this.#clients.size === 0) return new Caller(this.#secret, headers, true);
    const credential = credentialOf(headers);
    const client = this.#clients.get(this.#digest(credential));
    if (client) removeCredential(headers, credential);
    else if (this.#needsClient) throw apiError('unknown_client');
    return new Caller(this.#secret, headers, false, client);
  }

  #digest(token: string): string {
    return createHmac('sha256', this.#digestKey).update(token).digest('base64');
  }
}

/** Whom a request is from, and what that one may use. */
export class Caller {
  readonly client: ClientConfiguration | undefined;
  readonly #secret: string;
  readonly #headers: IncomingHttpHeaders;
  readonly #mayUseAll: boolean;
  readonly #owner: Owner | undefined;

  /** `isOpen`: everyone may use everything. */
  constructor(secret: string, headers: IncomingHttpHeaders, isOpen: boolean, known?: KnownClient) {
    this.client = known?.configuration;
    this.#secret = secret;
    this.#headers = headers;
    this.#mayUseAll = isOpen || (known !== undefined && known.configuration.routes === undefined);
    this.#owner = known?.owner;
  }

  /** Of the runs of this caller. Throws `conflicting_credentials`. */
  get owner(): Owner {
    return this.#owner ?? ownerOf(this.#secret, this.#headers);
  }

  /** Whether the owner is one of its own. */
  get isOwner(): boolean {
    return this.client !== undefined || hasCredential(this.#headers);
  }

  /** Throws what {@link refusal} returns. `use`: looked up only where it matters. */
  admit(use: () => RouteUse | undefined): void {
    const refusal = this.refusal(use);
    if (refusal) throw refusal;
  }

  /** `unknown_client` or `route_not_allowed`, where the caller may not use that. */
  refusal(use: () => RouteUse | undefined): ApiError | undefined {
    if (this.#mayUseAll) return undefined;
    const wanted = use();
    if (!wanted) return undefined;
    if (!this.client) return wanted.isKeyed ? apiError('unknown_client') : undefined;
    const { name, routes = [] } = this.client;
    const { route } = wanted;
    if (route !== undefined && routes.includes(route)) return undefined;
    const asked = route === undefined ? 'what is on no route' : `the route '${route}'`;
    return apiError('route_not_allowed', { client: name, asked });
  }
}
