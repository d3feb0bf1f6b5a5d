import { createHmac, randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import {
  JWKSMultipleMatchingKeys,
  JWKSNoMatchingKey,
  JWTClaimValidationFailed,
  JWTExpired,
} from 'jose/errors';
import { createLocalJWKSet } from 'jose/jwks/local';
import { createRemoteJWKSet } from 'jose/jwks/remote';
import { type JWTVerifyGetKey, jwtVerify } from 'jose/jwt/verify';
import type { Logger } from 'pino';
import {
  credentialOf,
  hasCredential,
  ownerOf,
  ownerOfClaim,
  ownerOfClient,
  ownerOfUser,
  removeCredential,
} from '../../checkpoint/owner.ts';
import type { Owner } from '../../checkpoint/store.ts';
import { type ClientConfiguration, type Configuration, isKeyed } from '../../config/configuration.ts';
import { ApiError, apiError } from '../../lib/errors.ts';
import type { Time } from '../../lib/time.ts';
import type { RouteUse } from '../upstream/route-table.ts';
import type { Target } from '../upstream/target.ts';
import type { Right, SignedUrls } from './signed-urls.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Set on every routed request before its body is read. */
    caller: Caller;
    /** Set if a client or a user is named; otherwise the credential determines the owner, and may be invalid. */
    namedOwner: Owner | undefined;
    /** The owner of the caller's runs. Throws `conflicting_credentials`. */
    readonly owner: Owner;
  }
}

interface CallersContext {
  readonly configuration: Configuration;
  readonly secret: string;
  readonly urls: SignedUrls;
  readonly time: Time;
  readonly log: Logger;
}

const DIGEST_KEY_BYTES = 32;

/**
 * Identifies the caller of a request by a client token, by a user that a front proxy or a JWT names, or by a
 * credential.
 */
export class Callers {
  readonly #secret: string;
  readonly #digestKey = randomBytes(DIGEST_KEY_BYTES);
  /** Keyed by the token's digest: callers can't choose a digest, so lookup time reveals nothing about a token. */
  readonly #clients: ReadonlyMap<string, Caller>;
  readonly #others: Caller;
  readonly #needsClient: boolean;
  readonly #ownerHeader: string | undefined;
  readonly #tokens: TokenOwners | undefined;
  readonly #urls: SignedUrls;
  readonly #configuration: Configuration;
  readonly #time: Time;

  constructor({ configuration, secret, urls, time, log }: CallersContext) {
    const { clients, owner, upstreams } = configuration;
    this.#configuration = configuration;
    this.#secret = secret;
    this.#time = time;
    this.#urls = urls;
    this.#clients = new Map(
      clients.map((client) => [
        this.#digest(client.token),
        new Caller(client.routes === undefined, client, ownerOfClient(secret, client.name)),
      ]),
    );
    this.#others = new Caller(clients.length === 0);
    this.#needsClient = clients.length > 0 && Object.values(upstreams).every(isKeyed);
    this.#ownerHeader = owner.header?.toLowerCase();
    const { claim, jwks_url } = owner;
    if (claim !== undefined && jwks_url !== undefined)
      this.#tokens = new TokenOwners({ ...owner, claim, jwks_url }, secret, log);
  }

  /** Adds the properties set by {@link identify} to the requests of this server. */
  decorate(api: FastifyInstance): void {
    const secret = this.#secret;
    api.decorateRequest('caller');
    api.decorateRequest('namedOwner', undefined);
    api.decorateRequest('owner', {
      getter(this: FastifyRequest) {
        return this.namedOwner ?? ownerOf(secret, this.headers);
      },
    });
  }

  /**
   * Identifies the caller, and removes headers meant for Holdfast alone: a client's token and its user's name. Throws
   * `unknown_client` if a token is required, `conflicting_credentials`, and for signed URLs `signature_invalid` or
   * `url_expired`. If a JWT names the owner, returns a promise that rejects with `invalid_token` or
   * `identity_unavailable`.
   */
  identify(request: FastifyRequest): Promise<void> | undefined {
    const { right } = request.routeOptions.config;
    const { signature } = request.query as Record<string, unknown>;
    if (right !== undefined && signature !== undefined) {
      this.#identifyByUrl(request, right, signature);
      return undefined;
    }
    if (this.#tokens) return this.#identifyByToken(request, this.#tokens);
    const { headers } = request;
    const user = this.#takeUser(headers);
    const caller = this.#clients.size > 0 ? this.#takeClient(headers) : this.#others;
    request.caller = caller;
    request.namedOwner = user === '' ? caller.owner : ownerOfUser(this.#secret, user, caller.client?.name);
    return undefined;
  }

  /** Ignores other credentials, which a page may send for its own server. */
  #identifyByUrl(request: FastifyRequest, right: Right, signature: unknown): void {
    const { id } = request.params as { id: string };
    const owner = this.#urls.ownerOf(right, id, signature, this.#time.wall());
    request.caller = callerOf(owner, this.#configuration, this.#secret);
    request.namedOwner = owner;
  }

  async #identifyByToken(request: FastifyRequest, tokens: TokenOwners): Promise<void> {
    request.caller = this.#others;
    request.namedOwner = await tokens.ownerOf(request.headers);
  }

  #takeUser(headers: IncomingHttpHeaders): string {
    if (this.#ownerHeader === undefined) return '';
    const user = String(headers[this.#ownerHeader] ?? '').trim();
    delete headers[this.#ownerHeader];
    return user;
  }

  #takeClient(headers: IncomingHttpHeaders): Caller {
    const credential = credentialOf(headers);
    const caller = this.#clients.get(this.#digest(credential));
    if (caller) removeCredential(headers, credential);
    else if (this.#needsClient) throw apiError('unknown_client');
    return caller ?? this.#others;
  }

  #digest(token: string): string {
    return createHmac('sha256', this.#digestKey).update(token).digest('base64');
  }
}

const BEARER_TOKEN = /^bearer +(\S+)$/i;

/** Asymmetric only: the keys are public, so they can't serve as an HMAC secret. */
const ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
];

/** Tolerance for clock differences. */
const CLOCK_TOLERANCE_S = 10;

const KEYS_TIMEOUT_MS = 3000;
/** Cached keys are fetched again after this time, so that revoked keys expire. */
const KEYS_MAX_AGE_MS = 600_000;
/** Tokens with unknown keys must not make this server flood the key server. */
const KEYS_COOLDOWN_MS = 5000;

/** Derives owners from JWTs. Stores nothing about a token. */
class TokenOwners {
  readonly #owner: Configuration['owner'] & { readonly claim: string };
  readonly #secret: string;
  readonly #log: Logger;
  readonly #keys: ReturnType<typeof createRemoteJWKSet>;
  /** The last fetch of the keys failed. Logged once, not per request. */
  #isFailing = false;

  constructor(
    owner: Configuration['owner'] & { readonly claim: string; readonly jwks_url: string },
    secret: string,
    log: Logger,
  ) {
    this.#owner = owner;
    this.#secret = secret;
    this.#log = log;
    this.#keys = createRemoteJWKSet(new URL(owner.jwks_url), {
      timeoutDuration: KEYS_TIMEOUT_MS,
      cacheMaxAge: KEYS_MAX_AGE_MS,
      cooldownDuration: KEYS_COOLDOWN_MS,
    });
  }

  /** Throws `invalid_token` or `identity_unavailable`. */
  async ownerOf({ authorization = '' }: IncomingHttpHeaders): Promise<Owner> {
    const { claim, issuer, audience } = this.#owner;
    const [, token] = BEARER_TOKEN.exec(authorization) ?? [];
    if (token === undefined) throw apiError('invalid_token', { reason: 'there is none' });
    const { payload } = await jwtVerify(token, this.#keyOf, {
      algorithms: ALGORITHMS,
      clockTolerance: CLOCK_TOLERANCE_S,
      ...(issuer !== undefined && { issuer }),
      ...(audience !== undefined && { audience }),
    }).catch((error: unknown) => {
      throw error instanceof ApiError ? error : apiError('invalid_token', { reason: reasonOf(error) });
    });
    const user = payload[claim];
    if (typeof user !== 'string' || user === '')
      throw apiError('invalid_token', { reason: `its claim '${claim}' is not a text` });
    return ownerOfClaim(this.#secret, { issuer: payload.iss, claim, user });
  }

  /** If the keys can't be fetched, the previous ones stay valid. */
  readonly #keyOf: JWTVerifyGetKey = async (header, token) => {
    try {
      const key = await this.#keys(header, token);
      this.#isFailing = false;
      return key;
    } catch (error) {
      if (error instanceof JWKSNoMatchingKey || error instanceof JWKSMultipleMatchingKeys) throw error;
      if (!this.#isFailing) this.#log.warn({ err: error }, 'the keys of owner.jwks_url cannot be fetched');
      this.#isFailing = true;
      return createLocalJWKSet(this.#keys.jwks() ?? { keys: [] })(header, token).catch(() => {
        throw apiError('identity_unavailable');
      });
    }
  };
}

/** Uses its own wording, because the library's messages quote the token. */
function reasonOf(error: unknown): string {
  if (error instanceof JWTExpired) return 'it has expired';
  if (error instanceof JWTClaimValidationFailed) return `its claim '${error.claim}' is not as it must be`;
  if (error instanceof JWKSNoMatchingKey) return 'it is signed with none of the keys of its issuer';
  return 'it is not a JWT with a valid signature';
}

/**
 * The owner of a caller that lists its own runs. Callers without a credential share one owner, so a list would reveal
 * the run ids that keep them apart. `expected`: the credential named in the error. Throws `missing_field`.
 */
export function ownOwnerOf({ namedOwner, headers, owner }: FastifyRequest, expected: string): Owner {
  if (namedOwner === undefined && !hasCredential(headers))
    throw apiError('missing_field', { param: 'Authorization', expected });
  return owner;
}

/**
 * The caller for runs of this owner when its credential is absent. If users are named, the owner doesn't identify a
 * client: it may use what its user was admitted to.
 */
export function callerOf(
  owner: Owner,
  { clients, owner: { header } }: Configuration,
  secret: string,
): Caller {
  const client = clients.find(({ name }) => ownerOfClient(secret, name) === owner);
  if (client) return new Caller(client.routes === undefined, client, owner, false);
  return new Caller(clients.length === 0 || header !== undefined, undefined, undefined, false);
}

/** The permissions of a caller: one per configured client, and one for all others. */
export class Caller {
  readonly client: ClientConfiguration | undefined;
  /** The owner of a client's runs. */
  readonly owner: Owner | undefined;
  readonly #mayUseAll: boolean;
  readonly #bringsKey: boolean;

  /** `bringsKey`: false if upstreams without an operator key can't be asked. */
  constructor(mayUseAll: boolean, client?: ClientConfiguration, owner?: Owner, bringsKey: boolean = true) {
    this.client = client;
    this.owner = owner;
    this.#bringsKey = bringsKey;
    this.#mayUseAll = mayUseAll;
  }

  /** Whether a key for the upstream is available. */
  canAsk({ upstream }: Pick<Target, 'upstream'>): boolean {
    return this.#bringsKey || isKeyed(upstream);
  }

  /** Throws the error from {@link refusal}. `use`: evaluated only if needed. */
  admit(use: () => RouteUse | undefined): void {
    const refusal = this.refusal(use);
    if (refusal) throw refusal;
  }

  /** `unknown_client` or `route_not_allowed` if the caller lacks permission, else `undefined`. */
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
