import { createHmac, randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import {
  credentialOf,
  hasCredential,
  ownerOf,
  ownerOfClient,
  ownerOfUser,
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

/** Identifies the caller of a request: by the token of a client, by the user that a front names, or by a credential. */
export class Callers {
  readonly #secret: string;
  readonly #digestKey = randomBytes(DIGEST_KEY_BYTES);
  /** By the digest of the token: how long a look-up takes says nothing about a token, whose digest cannot be chosen. */
  readonly #clients: ReadonlyMap<string, ClientConfiguration>;
  readonly #needsClient: boolean;
  readonly #ownerHeader: string | undefined;

  constructor({ clients, owner, upstreams }: Configuration, secret: string) {
    this.#secret = secret;
    this.#clients = new Map(clients.map((client) => [this.#digest(client.token), client]));
    const isKeyed = Object.values(upstreams).every(({ api_key }) => api_key !== undefined);
    this.#needsClient = clients.length > 0 && isKeyed;
    this.#ownerHeader = owner.header?.toLowerCase();
  }

  /**
   * Removes from `headers` what is for us alone: the token of a client, and the name of its user. Throws `unknown_client`
   * where nothing is served without a token, and `conflicting_credentials`.
   */
  identify(headers: IncomingHttpHeaders): Caller {
    const user = this.#takeUser(headers);
    const hasClients = this.#clients.size > 0;
    const client = hasClients ? this.#takeClient(headers) : undefined;
    const mayUseAll = !hasClients || (client !== undefined && client.routes === undefined);
    return new Caller(mayUseAll, client, this.#namedOwner(user, client) ?? { secret: this.#secret, headers });
  }

  #takeUser(headers: IncomingHttpHeaders): string {
    if (this.#ownerHeader === undefined) return '';
    const user = String(headers[this.#ownerHeader] ?? '').trim();
    delete headers[this.#ownerHeader];
    return user;
  }

  #takeClient(headers: IncomingHttpHeaders): ClientConfiguration | undefined {
    const credential = credentialOf(headers);
    const client = this.#clients.get(this.#digest(credential));
    if (client) removeCredential(headers, credential);
    else if (this.#needsClient) throw apiError('unknown_client');
    return client;
  }

  #namedOwner(user: string, client: ClientConfiguration | undefined): Owner | undefined {
    if (user !== '') return ownerOfUser(this.#secret, user, client?.name);
    return client && ownerOfClient(this.#secret, client.name);
  }

  #digest(token: string): string {
    return createHmac('sha256', this.#digestKey).update(token).digest('base64');
  }
}

/** Where an owner that nothing names is found: its credential may be one that is refused. */
interface OwnerByCredential {
  readonly secret: string;
  readonly headers: IncomingHttpHeaders;
}

/** The caller of a request, and what it may use. */
export class Caller {
  readonly client: ClientConfiguration | undefined;
  readonly #mayUseAll: boolean;
  readonly #owner: Owner | OwnerByCredential;

  constructor(mayUseAll: boolean, client: ClientConfiguration | undefined, owner: Owner | OwnerByCredential) {
    this.client = client;
    this.#mayUseAll = mayUseAll;
    this.#owner = owner;
  }

  /** Of the runs of this caller. Throws `conflicting_credentials`. */
  get owner(): Owner {
    const owner = this.#owner;
    return typeof owner === 'string' ? owner : ownerOf(owner.secret, owner.headers);
  }

  /** Whether the owner is one of its own. */
  get isOwner(): boolean {
    const owner = this.#owner;
    return typeof owner === 'string' || hasCredential(owner.headers);
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
