import { createHmac } from 'node:crypto';

const SECRET = /^whsec_([A-Za-z0-9+/]+={0,2})$/;
const KEY_BYTES_MIN = 24;
const KEY_BYTES_MAX = 64;

/** What a secret is, for messages about one that is none. */
export const WEBHOOK_SECRET = `whsec_ and ${KEY_BYTES_MIN} to ${KEY_BYTES_MAX} random bytes in base64`;

/** What is signed: once for each attempt to deliver it. */
export interface SignedMessage {
  /** The same for all attempts, so that its receiver can tell a repetition. */
  readonly id: string;
  /** When the attempt is made, in seconds since the Unix epoch: receivers refuse what is too old. */
  readonly timestamp_s: number;
  readonly body: string;
}

/** The key that a secret of the Standard Webhooks specification stands for; `undefined` for what is no such secret. */
export function webhookKey(secret: string): Buffer | undefined {
  const [, encoded = ''] = SECRET.exec(secret) ?? [];
  const key = Buffer.from(encoded, 'base64');
  // What Node skips, or fills up, other decoders refuse.
  const isExact = key.toString('base64') === encoded;
  return isExact && key.length >= KEY_BYTES_MIN && key.length <= KEY_BYTES_MAX ? key : undefined;
}

/** The headers by which a receiver knows that a message is genuine, as https://www.standardwebhooks.com has them. */
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
