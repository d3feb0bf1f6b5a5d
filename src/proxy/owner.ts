import { createHmac, randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Owner, RunId } from '../checkpoint/store.ts';

const RUN_ID_BYTES = 16;

const BEARER = /^bearer +/i;

/** Where clients put their credential, in order of preference. Replaced as a whole by an upstream's `api_key`. */
export const CREDENTIAL_HEADERS = ['authorization', 'api-key', 'x-api-key'] as const;

/**
 * Who a request belongs to: the same for one key on every wire, wherever its client puts it. Keyed, so that what a store
 * holds cannot be tested against guessed credentials. Requests without a credential share one owner.
 */
export function ownerOf(secret: string, headers: IncomingHttpHeaders): Owner {
  const name = CREDENTIAL_HEADERS.find((header) => headers[header] !== undefined);
  const credential = name === undefined ? '' : String(headers[name]).replace(BEARER, '');
  return createHmac('sha256', secret).update(credential).digest('hex') as Owner;
}

export const newRunId = (): RunId => `run_${randomBytes(RUN_ID_BYTES).toString('base64url')}`;
