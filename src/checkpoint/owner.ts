import { createHmac, hash, randomFillSync } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { CLIENT_CREDENTIALS, CREDENTIAL_HEADERS, GATEWAY_CREDENTIAL } from '../config/configuration.ts';
import { remember } from '../lib/bounded-map.ts';
import { apiError } from '../lib/errors.ts';
import type { Owner, RunId } from './store.ts';

const RUN_ID_BYTES = 16;

const BEARER = /^bearer(?: +|$)/i;

/**
 * Cache of recent owners, because a plain digest takes an eighth of the time of a keyed one. Keyed by digest, so that
 * no credential stays in memory after its request.
 */
const owners = new Map<string, Owner>();
const OWNERS_MAX = 1000;

/**
 * The owner of a request: the same for one key on every wire, whichever header carries it. Keyed with the secret, so
 * that a store's content can't be tested against guessed credentials. Requests without a credential share one owner.
 * Throws `conflicting_credentials`.
 */
export function ownerOf(secret: string, headers: IncomingHttpHeaders): Owner {
  const credential = credentialOf(headers);
  const key = hash('sha256', `${secret}\n${credential}`);
  const known = owners.get(key);
  if (known !== undefined) return known;
  const owner = createHmac('sha256', secret).update(credential).digest('hex') as Owner;
  remember(owners, key, owner, OWNERS_MAX);
  return owner;
}

/** Whether the request has a credential and so doesn't belong to the shared owner. */
export const hasCredential = (headers: IncomingHttpHeaders): boolean => credentialOf(headers) !== '';

/** The credential of a request; empty without one. Throws `conflicting_credentials`. */
export function credentialOf(headers: IncomingHttpHeaders): string {
  let credential = '';
  let header = '';
  // Empty headers are ignored. Two different credentials are rejected, because one could otherwise reach the other's
  // runs.
  for (const name of CLIENT_CREDENTIALS) {
    const value = tokenIn(headers[name]);
    if (value === '' || value === credential) continue;
    if (credential !== '') throw apiError('conflicting_credentials', { header, other: name });
    credential = value;
    header = name;
  }
  return credential === '' ? tokenIn(headers[GATEWAY_CREDENTIAL]) : credential;
}

/** Deletes every header that carries the credential. */
export function removeCredential(headers: IncomingHttpHeaders, credential: string): void {
  for (const name of CREDENTIAL_HEADERS) if (tokenIn(headers[name]) === credential) delete headers[name];
}

const tokenIn = (header: string | readonly string[] | undefined): string =>
  header === undefined ? '' : String(header).replace(BEARER, '').trim();

export const newRunId = (): RunId => `run_${randomText(RUN_ID_BYTES)}`;

/** The owner of notes that a deployment's replicas leave for one another. */
export const replicasOf = (secret: string): Owner => namedOwner(secret, 'replicas');

/** The owner of a configured client's runs, independent of its token. */
export const ownerOfClient = (secret: string, name: string): Owner => namedOwner(secret, `client\n${name}`);

/** The owner of the runs of a user named by a header. `client`: the configured client that names the user, if any. */
export const ownerOfUser = (secret: string, user: string, client = ''): Owner =>
  namedOwner(secret, `user\n${client}\n${user}`);

/**
 * The owner of the runs of a user named by a JWT claim. Encoded as JSON, because all three values can contain line
 * breaks.
 */
export const ownerOfClaim = (
  secret: string,
  { issuer = '', claim, user }: { issuer: string | undefined; claim: string; user: string },
): Owner => namedOwner(secret, `claim\n${JSON.stringify([issuer, claim, user])}`);

/** Contains a line break, which no header can, so it never equals a credential's owner. */
const namedOwner = (secret: string, name: string): Owner =>
  createHmac('sha256', secret).update(`\n${name}`).digest('hex') as Owner;

const POOL_BYTES = 4096;

const pool = Buffer.alloc(POOL_BYTES);
let used_bytes = POOL_BYTES;

/**
 * Random bytes as base64url, at most 4 KiB. Drawn from a pool, because a separate draw takes 4 µs, twenty times as long
 * as the rest.
 */
function randomText(bytes: number): string {
  if (used_bytes + bytes > POOL_BYTES) {
    randomFillSync(pool);
    used_bytes = 0;
  }
  const start = used_bytes;
  used_bytes += bytes;
  return pool.toString('base64url', start, used_bytes);
}
