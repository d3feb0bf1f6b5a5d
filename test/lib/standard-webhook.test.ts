import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { webhookHeaders, webhookKey } from '../../src/lib/standard-webhook.ts';
import { CASES, seedOr } from '../cases.ts';

const secretOf = (key: Uint8Array): string => `whsec_${Buffer.from(key).toString('base64')}`;
const keys = fc.uint8Array({ minLength: 24, maxLength: 64 });
const ids = fc.stringMatching(/^[A-Za-z0-9_-]{1,60}$/);
const now_s = (): number => Math.floor(Date.now() / 1000);

/** The headers that the secret's key produces. */
function signed(secret: string, id: string, body: string, timestamp_s = now_s()): Record<string, string> {
  const key = webhookKey(secret);
  if (!key) throw new Error(`${secret} is no secret`);
  return { ...webhookHeaders(key, { id, timestamp_s, body }) };
}

it('the verifier of the specification accepts every message, and returns what it says', () => {
  fc.assert(
    fc.property(keys, ids, fc.object(), (key, id, content) => {
      const body = JSON.stringify({ content });
      const secret = secretOf(key);
      expect(new Webhook(secret).verify(body, signed(secret, id, body))).toEqual(JSON.parse(body));
    }),
    { numRuns: CASES, seed: seedOr(1) },
  );
});

it('the verifier refuses what was changed on its way: the id, the time, the body, or the key', () => {
  const [secret, other] = [secretOf(Buffer.alloc(24, 1)), secretOf(Buffer.alloc(24, 2))];
  const headers = signed(secret, 'msg_1', '{"a":1}');
  const verify = (changed: Record<string, string>, body = '{"a":1}', by = secret) =>
    new Webhook(by).verify(body, { ...headers, ...changed });
  expect(verify({})).toEqual({ a: 1 });
  expect(() => verify({ 'webhook-id': 'msg_2' })).toThrow('No matching signature');
  expect(() => verify({ 'webhook-timestamp': String(now_s() - 1) })).toThrow('No matching signature');
  expect(() => verify({}, '{"a":2}')).toThrow('No matching signature');
  expect(() => verify({}, undefined, other)).toThrow('No matching signature');
});

describe('a secret', () => {
  it('is whsec_ and 24 to 64 bytes in base64', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 80 }), (bytes) => {
        const isUsable = bytes.length >= 24 && bytes.length <= 64;
        expect(webhookKey(secretOf(bytes))).toEqual(isUsable ? Buffer.from(bytes) : undefined);
      }),
      { numRuns: CASES, seed: seedOr(1) },
    );
  });

  it.each([
    ['', 'nothing'],
    ['correct horse battery staple', 'a password'],
    [secretOf(Buffer.alloc(32)).slice('whsec_'.length), 'one without its prefix'],
    [secretOf(Buffer.alloc(32)).replace('=', ''), 'one without its padding'],
    [`${secretOf(Buffer.alloc(32))}\n`, 'one with a line break'],
    [secretOf(Buffer.alloc(32, 255)).replaceAll('/', '_'), 'one in the alphabet of URLs'],
  ])('is not %j: %s', (text) => {
    expect(webhookKey(text)).toBeUndefined();
  });
});
