import { describe, expect, test } from 'vitest';
import type { Usage } from '../../src/plans/delta.ts';
import { type AttemptUsage, deliveredTokens, type PromptSize, repaidTokens } from '../../src/plans/tokens.ts';
import { logicalUsage, usageByUpstream } from '../../src/plans/usage-ledger.ts';

const tokens = (deltas: number) => ({ deltas, characters: deltas * 4 });
const NONE = tokens(0);

const attempt = (mode: AttemptUsage['mode'], changes: Partial<AttemptUsage> = {}): AttemptUsage => ({
  mode,
  text: NONE,
  reasoning: NONE,
  tools: NONE,
  swallowed: NONE,
  added_messages: [],
  ...changes,
});

const usage = (prompt_tokens: number, completion_tokens: number, more: object = {}): Usage => ({
  prompt_tokens,
  completion_tokens,
  total_tokens: prompt_tokens + completion_tokens,
  ...more,
});

/** Two messages with an estimated (3 + 10) + (3 + 2) tokens. */
const size: PromptSize = { message_characters: [40, 8], tool_characters: 0, media_tokens: 0 };

describe('the usage of the one answer that the client saw', () => {
  test.each<[string, AttemptUsage[], Usage]>([
    [
      'one attempt that reported it',
      [attempt('first', { reported: usage(12, 30), text: tokens(29) })],
      usage(12, 30),
    ],
    [
      'one attempt whose total is more than its parts',
      [attempt('first', { reported: usage(12, 30, { total_tokens: 50 }) })],
      usage(12, 30, { total_tokens: 50 }),
    ],
    [
      'one attempt that did not: estimated',
      [attempt('first', { text: tokens(20), reasoning: tokens(5), tools: tokens(7) })],
      usage(18, 32),
    ],
    ['no attempt', [], usage(18, 0)],
    [
      'a replay, which generates it all again',
      [
        attempt('first', { text: tokens(20) }),
        attempt('replay', { reported: usage(12, 50), swallowed: tokens(20) }),
      ],
      usage(12, 50),
    ],
    [
      'an answer that was come back to: its own report',
      [
        attempt('first', { text: tokens(20) }),
        attempt('resume', { reported: usage(12, 50), text: tokens(30) }),
      ],
      usage(12, 50),
    ],
    [
      'a restart, too',
      [attempt('first', { reasoning: tokens(9) }), attempt('restart', { reported: usage(12, 50) })],
      usage(12, 50),
    ],
    [
      'a continuation: delivered tokens once, its own prompt less what was added',
      [
        attempt('first', { text: tokens(20) }),
        attempt('prefill', { reported: usage(12 + 20, 30), text: tokens(30), added_messages: [80] }),
      ],
      usage(12, 50),
    ],
    [
      'a continuation that repeated something',
      [
        attempt('first', { text: tokens(20) }),
        attempt('nudge', {
          reported: usage(18 + 23 + 33, 40),
          text: tokens(30),
          swallowed: tokens(10),
          added_messages: [80, 120],
        }),
      ],
      usage(18, 50),
    ],
    [
      'the first attempt told what its prompt was',
      [
        attempt('first', { reported: usage(14, 20), text: tokens(20) }),
        attempt('prefill', { reported: usage(99, 30), added_messages: [80] }),
      ],
      usage(14, 50),
    ],
    [
      'only an attempt in the middle told anything',
      [
        attempt('first', { text: tokens(20) }),
        attempt('prefill', { reported: usage(12 + 20, 5), text: tokens(5), added_messages: [80] }),
        attempt('prefill', { text: tokens(25), added_messages: [100] }),
      ],
      usage(12, 50),
    ],
    [
      'a continuation that came with the prefix, which was not counted',
      [
        attempt('first', { text: tokens(20) }),
        attempt('prefill', {
          reported: usage(12 + 20, 30),
          text: tokens(30),
          swallowed: tokens(20),
          added_messages: [80],
        }),
      ],
      usage(12, 50),
    ],
    [
      'a continuation that came with the prefix, which was counted',
      [
        attempt('first', { text: tokens(20) }),
        attempt('prefill', {
          reported: usage(12 + 20, 50),
          text: tokens(30),
          swallowed: tokens(20),
          added_messages: [80],
        }),
      ],
      usage(12, 50),
    ],
    [
      'a prompt that is smaller than what was added to it, as counted',
      [
        attempt('first', { text: tokens(200) }),
        attempt('prefill', { reported: usage(10, 5), added_messages: [800] }),
      ],
      usage(1, 205),
    ],
    [
      'thoughts that were sent back, which were reported as thoughts',
      [
        attempt('first', { reasoning: { deltas: 300, characters: 1_800 }, text: tokens(20) }),
        attempt('prefill', {
          reported: usage(27 + 300 + 20, 30),
          text: tokens(30),
          added_messages: [80],
          added_reasoning: 1_800,
        }),
      ],
      usage(27, 350),
    ],
    [
      'deltas of several tokens: as many as the report says that as many characters have',
      [
        attempt('first', { text: { deltas: 10, characters: 300 } }),
        attempt('prefill', {
          reported: usage(12 + 100, 100),
          text: { deltas: 10, characters: 300 },
          added_messages: [300],
        }),
      ],
      usage(12, 200),
    ],
    [
      'a report without a prompt: estimated',
      [attempt('first', { text: tokens(20) }), attempt('replay', { reported: usage(0, 50) })],
      usage(18, 50),
    ],
    [
      'fewer tokens than were swallowed, as counted',
      [attempt('nudge', { reported: usage(30, 5), swallowed: tokens(10), added_messages: [] })],
      usage(30, 0),
    ],
  ])('%s', (_, attempts, expected) => {
    expect(logicalUsage(attempts, size)).toEqual(expected);
  });

  // No event shows the markup around a call, so the report for the rest doesn't mean one token per character.
  test.each([1, 4, 15, 29])(
    'is in all what was reported, when a prefix of %i tokens was sent back',
    (said) => {
      const count = { deltas: said, characters: said };
      const shown = { deltas: 70 - said, characters: 70 - said };
      const attempts = [
        attempt('first', { text: count }),
        attempt('prefill', {
          text: shown,
          added_messages: [said],
          reported: usage(1500 + said, 163 - said),
        }),
      ];
      const long: PromptSize = { message_characters: [1500], tool_characters: 0, media_tokens: 0 };
      expect(logicalUsage(attempts, long).total_tokens).toBe(1663);
    },
  );

  test('keeps the details that the last attempt reported', () => {
    const details = { completion_tokens_details: { reasoning_tokens: 3 } };
    const attempts = [
      attempt('first', { text: tokens(20) }),
      attempt('prefill', { reported: usage(32, 30, details), added_messages: [80] }),
    ];
    expect(logicalUsage(attempts, size)).toEqual(usage(12, 50, details));
  });
});

describe('what recovery is judged by', () => {
  const attempts = [
    attempt('first', { text: tokens(20), reasoning: tokens(100), tools: tokens(3) }),
    attempt('nudge', { text: tokens(10), swallowed: tokens(12) }),
    attempt('nudge', { swallowed: tokens(1) }),
  ];

  test('the text counts against what is left of max_tokens, reasoning does not', () => {
    expect(deliveredTokens(attempts)).toBe(30);
  });

  test('what came again was paid for twice', () => {
    expect(repaidTokens(attempts)).toBe(13);
  });
});

test('the parts of each upstream are distinguished', () => {
  const attempts = [
    attempt('first', { text: tokens(7) }),
    attempt('first', { upstream: 'one', text: tokens(20), tools: tokens(3) }),
    attempt('nudge', { upstream: 'two', reported: usage(40, 12), text: tokens(10) }),
    attempt('nudge', { upstream: 'one', reported: usage(60, 5), text: tokens(5) }),
  ];
  // It's unknown which upstreams another replica had asked.
  expect(usageByUpstream(attempts)).toEqual([
    {
      upstream: 'one',
      attempts: 2,
      prompt_tokens: 60,
      completion_tokens: 5,
      unreported: 1,
      delivered_tokens: 28,
    },
    {
      upstream: 'two',
      attempts: 1,
      prompt_tokens: 40,
      completion_tokens: 12,
      unreported: 0,
      delivered_tokens: 10,
    },
  ]);
});
