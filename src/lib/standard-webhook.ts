import { createHmac } from 'node:crypto';

const SECRET = /^whsec_([A-Za-z0-9+/]+={0,2})$/;
const KEY_BYTES_MIN = 24;
const KEY_BYTES_MAX = 64;

/** Describes a valid secret in error messages. */
export const WEBHOOK_SECRET = `whsec_ and ${KEY_BYTES_MIN} to ${KEY_BYTES_MAX} random bytes in base64`;

/** Signed anew for each delivery attempt. */
export interface SignedMessage {
  /** The same for all attempts, so that the receiver can detect duplicates. */
  readonly id: string;
  /** Time of the attempt in seconds since the Unix epoch. Receivers reject old messages. */
  readonly timestamp_s: number;
  readonly body: string;
}

/** The key of a Standard Webhooks secret; `undefined` if the secret is malformed. */
export function webhookKey(secret: string): Buffer | undefined {
  const [, encoded = ''] = SECRET.exec(secret) ?? [];
  const key = Buffer.from(encoded, 'base64');
  // Node tolerates malformed base64 that other decoders reject.
  const isExact = key.toString('base64') === encoded;
  return isExact && key.length >= KEY_BYTES_MIN && key.length <= KEY_BYTES_MAX ? key : undefined;
}

/** The headers that prove a message genuine, as specified by https://www.standardwebhooks.com. */
export function webhookHeaders(
  key: Buffer,
  { id, timestamp_s, body }: SignedMessage,
): Readonly<Record<string, string>> {
  const signature = createHmac('sha256', key).update(`${id}.${timestamp_s}.${body}`).digest('base64');
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp_s),
    'webhook-signature': `v1,${signature}`,
  };
}
