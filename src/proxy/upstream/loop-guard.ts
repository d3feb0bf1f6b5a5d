import { createHmac } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { apiError } from '../../lib/errors.ts';

/** An entry of `Via` that a Holdfast has made. */
const ENTRY = /^1\.1 holdfast-[\w-]{16}$/;
const NAME_CHARACTERS = 16;

/** Entries of a `Via` header that Holdfasts have made: the others are nobody's business upstream. */
export const holdfastsIn = (via: string | undefined): readonly string[] =>
  (via ?? '')
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => ENTRY.test(entry));

/**
 * Refuses requests that have come by this deployment before, and makes the others say so from now on (RFC 9110
 * §7.6.3): two that have each other for an upstream would pass a request on for ever. Replicas that share a secret are
 * one deployment; what its name upstream is derived from cannot be told from it. Throws `loop_detected`.
 */
export function loopGuard(secret: string): (headers: IncomingHttpHeaders) => void {
  const name = createHmac('sha256', secret).update('via').digest('base64url').slice(0, NAME_CHARACTERS);
  const entry = `1.1 holdfast-${name}`;
  return (headers) => {
    const before = holdfastsIn(headers.via);
    if (before.includes(entry)) throw apiError('loop_detected');
    headers.via = [...before, entry].join(', ');
  };
}
