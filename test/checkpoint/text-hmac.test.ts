import { createHmac, createSecretKey } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TextHmac } from '../../src/checkpoint/text-hmac.ts';
import { CASES } from '../cases.ts';

const MAX_KEY_BYTES = 64;

const key_bytes = fc.uint8Array({ minLength: 1, maxLength: MAX_KEY_BYTES });
/** With halves of surrogate pairs, which have no UTF-8 of their own, and longer than a pooled buffer. */
const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: fc.nat(0xffff).map((unit) => String.fromCharCode(unit)) }),
  fc.tuple(fc.string({ unit: 'grapheme' }), fc.nat(3000)).map(([part, times]) => part.repeat(times)),
);

test('it is the HMAC-SHA-256 of Node, whatever the key and the texts before', () => {
  fc.assert(
    fc.property(key_bytes, fc.array(text, { minLength: 1 }), (bytes, texts) => {
      const key = createSecretKey(bytes);
      const hmac = new TextHmac(key);
      for (const one of texts)
        expect(hmac.digest(one)).toBe(createHmac('sha256', key).update(one).digest('base64url'));
    }),
    { numRuns: CASES },
  );
});

test('a key that is longer than a block is refused', () => {
  const key = createSecretKey(Buffer.alloc(MAX_KEY_BYTES + 1));
  expect(() => new TextHmac(key)).toThrow('a key of 65 bytes; at most 64');
});
