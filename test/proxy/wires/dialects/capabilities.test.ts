import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type Capabilities,
  merged,
  NOTHING,
} from '../../../../src/proxy/wires/dialects/capability-memory.ts';
import { DIALECTS } from '../../../../src/proxy/wires/dialects/registry.ts';
import {
  decodeCapabilities,
  encodeCapabilities,
} from '../../../../src/proxy/wires/dialects/stored-capabilities.ts';
import { CASES } from '../../../cases.ts';

const manner = fc.constantFrom('exact', 'echo', 'new_turn', undefined);
const capabilities: fc.Arbitrary<Capabilities> = fc.record({
  prefill: manner,
  keeps: fc.constantFrom(true, false, undefined),
  dialect: fc.constantFrom(...Object.values(DIALECTS), undefined),
});
const LEARNT_MS = 1_700_000_000_000;

describe('a record of capabilities', () => {
  test('says what was recorded', () => {
    fc.assert(
      fc.property(capabilities, fc.nat(), (recorded, learnt_at_ms) => {
        expect(decodeCapabilities(encodeCapabilities(recorded, learnt_at_ms))).toEqual({
          ...recorded,
          learnt_at_ms,
        });
      }),
      { numRuns: CASES },
    );
  });

  test('is small, whatever it says', () => {
    fc.assert(
      fc.property(capabilities, (recorded) => {
        expect(encodeCapabilities(recorded, LEARNT_MS).length).toBeLessThan(200);
      }),
      { numRuns: CASES },
    );
  });

  test('that is anything else is none', () => {
    const anything = fc.oneof(fc.string(), fc.json());
    fc.assert(
      fc.property(anything, (text) => decodeCapabilities(text) === undefined),
      { numRuns: CASES },
    );
  });

  const whole = { version: 1, learnt_at_ms: LEARNT_MS, prefill: 'exact', keeps: true, dialect: 'vllm' };
  test.each([
    ['of another version', { version: 2 }],
    ['without a version', { version: undefined }],
    ['of no time', { learnt_at_ms: undefined }],
    ['of a time that is none', { learnt_at_ms: '2026-01-01' }],
    ['of a time before all', { learnt_at_ms: -1 }],
    ['with an unknown manner', { prefill: 'backwards' }],
    ['with a manner that is none', { prefill: null }],
    ['that keeps a word', { keeps: 'yes' }],
    ['with an unknown dialect', { dialect: 'esperanto' }],
    ['with a dialect that every object has', { dialect: 'constructor' }],
    ['with a dialect that is none', { dialect: ['vllm'] }],
  ])('%s is of no use', (_, field) => {
    expect(decodeCapabilities(JSON.stringify(whole))).toBeDefined();
    expect(decodeCapabilities(JSON.stringify({ ...whole, ...field }))).toBeUndefined();
  });

  test('that is damaged is of no use', () => {
    const text = JSON.stringify(whole);
    for (let length = 0; length < text.length; length++)
      expect(decodeCapabilities(text.slice(0, length))).toBeUndefined();
  });
});

describe('two findings about one model', () => {
  const { vllm, ollama } = DIALECTS;

  test('are put together, and what was found here comes first', () => {
    const here = { prefill: 'exact', keeps: undefined, dialect: vllm } as const;
    const elsewhere = { prefill: 'new_turn', keeps: false, dialect: vllm } as const;
    expect(merged(here, elsewhere)).toEqual({ prefill: 'exact', keeps: false, dialect: vllm });
  });

  test.each([
    ['one that was recognised here', { dialect: vllm }, { prefill: 'new_turn' }, { dialect: vllm }],
    ['one that was recognised elsewhere', { prefill: 'new_turn' }, { dialect: vllm }, { dialect: vllm }],
    ['another one here', { dialect: vllm }, { dialect: ollama, prefill: 'exact' }, { dialect: vllm }],
  ] as const)('say nothing of what was asked without the dialect: %s', (_, here, elsewhere, together) => {
    expect(merged({ ...NOTHING, ...here }, { ...NOTHING, ...elsewhere })).toEqual({
      ...NOTHING,
      ...together,
    });
  });
});
