import { createHmac, createSecretKey } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { KeyedHash } from '../../src/lib/keyed-hash.ts';
import { CASES } from '../cases.ts';

/** Any text, with characters of every length in UTF-8 and halves of surrogate pairs, short and long. */
const text = fc.oneof(
  fc.string({ unit: 'binary', size: 'max', maxLength: 300 }),
  fc
    .array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 50 })
    .map((units) => String.fromCharCode(...units)),
  fc
    .tuple(fc.constantFrom('a', 'é', '–', '🙂', '\ud83d'), fc.nat(20_000))
    .map(([one, count]) => one.repeat(count)),
);

describe('the digest of a text', () => {
  test('is its HMAC-SHA-256, whatever the key, the text, and the texts before', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 1, maxLength: 200 }),
        fc.array(text, { maxLength: 5 }),
        (key, texts) => {
          const object = createSecretKey(key);
          const keyed = KeyedHash.of(object);
          for (const one of texts)
            expect(keyed.digest(one)).toBe(createHmac('sha256', object).update(one).digest('base64url'));
        },
      ),
      { numRuns: CASES },
    );
  });

  test('is the same for a key given as text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 100 }), text, (key, one) => {
        expect(KeyedHash.of(key).digest(one)).toBe(createHmac('sha256', key).update(one).digest('base64url'));
      }),
      { numRuns: CASES },
    );
  });
});
