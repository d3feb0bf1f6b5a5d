import { inspect } from 'node:util';
import { Worker } from 'node:worker_threads';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createSeal, sealWith } from '../../src/checkpoint/seal.ts';
import { CASES } from '../cases.ts';
import { SEALING_KEY } from './fixtures.ts';

const OTHER_KEY = 'o'.repeat(32);
const TEXT = '{"text":"Grüße 🙂"}';

describe('what is sealed', () => {
  test('is opened as it was', () => {
    const seal = createSeal([SEALING_KEY]);
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        expect(seal.open(seal.seal(text))).toBe(text);
      }),
      { numRuns: CASES },
    );
  });

  test('never looks the same twice, and does not show what it is', () => {
    const seal = createSeal([SEALING_KEY]);
    const sealed = Array.from({ length: 100 }, () => seal.seal(TEXT));
    expect(new Set(sealed).size).toBe(100);
    for (const one of sealed) expect(one).toMatch(/^[\w-]{8}\.[\w-]+$/);
  });

  test('is opened by every process with the same secret', () => {
    expect(createSeal([SEALING_KEY]).open(createSeal([SEALING_KEY]).seal(TEXT))).toBe(TEXT);
  });

  test('is not opened with another secret, for another subject, or for none', () => {
    const sealed = createSeal([SEALING_KEY]).for('run_a').seal(TEXT);
    expect(createSeal([OTHER_KEY]).for('run_a').open(sealed)).toBeUndefined();
    expect(createSeal([SEALING_KEY]).for('run_b').open(sealed)).toBeUndefined();
    expect(createSeal([SEALING_KEY]).open(sealed)).toBeUndefined();
    expect(createSeal([SEALING_KEY]).for('run_a').open(sealed)).toBe(TEXT);
  });

  test('is not opened once any byte of it was changed, or part of it is missing', () => {
    const seal = createSeal([SEALING_KEY]);
    const [id = '', content = ''] = seal.seal(TEXT).split('.');
    const bytes = Buffer.from(content, 'base64url');
    for (let position = 0; position < bytes.length; position++) {
      const changed = Buffer.from(bytes);
      changed[position] = (changed[position] as number) ^ 1;
      expect(seal.open(`${id}.${changed.toString('base64url')}`)).toBeUndefined();
      expect(seal.open(`${id}.${bytes.subarray(0, position).toString('base64url')}`)).toBeUndefined();
    }
    expect(seal.open(`${id}.${content}`)).toBe(TEXT);
  });

  test.each(['', '.', 'x', 'unknown.AAAA', '{}'])('%j is nothing that was sealed', (text) => {
    expect(createSeal([SEALING_KEY]).open(text)).toBeUndefined();
  });
});

describe('a new key', () => {
  test('seals from then on, while the old one still opens', () => {
    const before = createSeal([OTHER_KEY]);
    const rotated = createSeal([SEALING_KEY, OTHER_KEY]);
    const after = createSeal([SEALING_KEY]);
    const [old_text, new_text] = [before.seal('old'), rotated.seal('new')];
    expect(rotated.open(old_text)).toBe('old');
    expect(after.open(new_text)).toBe('new');
    expect(after.open(old_text)).toBeUndefined();
    expect(before.open(new_text)).toBeUndefined();
  });
});

test('keys can be given to another thread', async () => {
  const seal = createSeal([SEALING_KEY, OTHER_KEY]);
  const worker = new Worker(
    "const { parentPort, workerData } = require('node:worker_threads'); parentPort.postMessage(workerData);",
    { eval: true, workerData: seal.material },
  );
  const keys = await new Promise<typeof seal.material>((resolve) => worker.once('message', resolve));
  await worker.terminate();
  expect(sealWith(keys).open(seal.seal(TEXT))).toBe(TEXT);
});

test('neither secrets nor keys are shown when a seal is printed', () => {
  const shown = inspect(createSeal([SEALING_KEY]), { depth: 9, showHidden: true });
  expect(shown).not.toContain(SEALING_KEY);
  expect(shown).not.toMatch(/<Buffer/);
});
