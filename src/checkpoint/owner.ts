import { createHmac, hash, randomFillSync } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Owner, RunId } from './store.ts';

const RUN_ID_BYTES = 16;

const BEARER = /^bearer +/i;

/** Where clients put their credential, in order of preference. Replaced as a whole by an upstream's `api_key`. */
export const CREDENTIAL_HEADERS = ['authorization', 'api-key', 'x-api-key'] as const;

/**
 * The last owners that were asked for, since a plain digest takes an eighth of the time of a keyed one. By digest: of a
 * credential itself nothing stays in memory beyond its request.
 */
const owners = new Map<string, Owner>();
const OWNERS_MAX = 1000;

/**
 * The owner of a request: the same for one key on every wire, whichever header carries it. Keyed, so that the contents of
 * a store cannot be tested against guessed credentials. Requests without a credential share one owner.
 */
export function ownerOf(secret: string, headers: IncomingHttpHeaders): Owner {
  const credential = credentialOf(headers);
  const key = hash('sha256', `${secret}\n${credential}`);
  const known = owners.get(key);
  if (known !== undefined) return known;
  const owner = createHmac('sha256', secret).update(credential).digest('hex') as Owner;
  owners.set(key, owner);
  const [oldest] = owners.keys();
  if (owners.size > OWNERS_MAX && oldest !== undefined) owners.delete(oldest);
  return owner;
}

/** Whether the owner is one of its own. */
export const hasCredential = (headers: IncomingHttpHeaders): boolean => credentialOf(headers) !== '';

function credentialOf(headers: IncomingHttpHeaders): string {
  const name = CREDENTIAL_HEADERS.find((header) => headers[header] !== undefined);
  return name === undefined ? '' : String(headers[name]).replace(BEARER, '');
}

export const newRunId = (): RunId => `run_${randomText(RUN_ID_BYTES)}`;

/** The owner of notes that the replicas of a deployment leave for one another: no header can contain a line break. */
export const replicasOf = (secret: string): Owner =>
  createHmac('sha256', secret).update('\nreplicas').digest('hex') as Owner;

const POOL_BYTES = 4096;

const pool = Buffer.alloc(POOL_BYTES);
let used_bytes = POOL_BYTES;

/**
 * So many random bytes as base64url, at most 4 KiB. They are drawn for many texts at once: a draw for each would take
 * 4 µs, twenty times as long as the rest.
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
