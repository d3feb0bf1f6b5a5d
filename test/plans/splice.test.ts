import { describe, expect, test } from 'vitest';
import type { Delta } from '../../src/plans/delta.ts';
import { prefixOf } from '../../src/plans/seam/mode.ts';
import { Splice, type SpliceOptions } from '../../src/plans/splice.ts';
import { call, reasoning, refusal, start, text } from './saying.ts';

const DELIVERED = 'The holdfast grips';

function spliceOf(
  changes: Partial<SpliceOptions> & { readonly text?: string; readonly reasoning?: string } = {},
) {
  const { text = DELIVERED, reasoning = '', ...options } = changes;
  return new Splice({
    mode: 'prefill',
    delivered: { text, reasoning },
    prefix: prefixOf(text, false),
    manner: undefined,
    isProven: false,
    lastResort: false,
    strict: false,
    continuesReasoning: false,
    stops: [],
    ...options,
  });
}

/** All output for these deltas, which end the attempt. */
const spliced = (splice: Splice, ...deltas: Delta[]): Delta[] => [
  ...deltas.flatMap((delta) => splice.accept(delta)),
  ...splice.end(),
];

describe('text', () => {
  test('is joined at the seam', () => {
    const splice = spliceOf({ manner: 'echo' });
    expect(spliced(splice, text('The holdfast '), text('grips the'), text(' rock.'))).toEqual([
      text(' the'),
      text(' rock.'),
    ]);
    expect(splice).toMatchObject({
      seam: 'exact',
      rejection: undefined,
      stopReason: undefined,
      isOpen: true,
    });
  });

  test('that was held back comes at the end', () => {
    expect(spliced(spliceOf(), text(' th'))).toEqual([text(' th')]);
  });

  test('that repeats everything leaves nothing to say', () => {
    expect(spliced(spliceOf({ manner: 'echo' }), text(DELIVERED))).toEqual([]);
  });
});

describe('an answer that cannot be joined', () => {
  test('is one whose rest came as reasoning: it would be left out, and the answer pass for whole', () => {
    const splice = spliceOf();
    expect(spliced(splice, reasoning(' the rock.'))).toEqual([]);
    expect(splice.rejection).toBe('no_continuation');
  });

  test.each([
    ['text', [reasoning('Hm.'), text(' the rock.')]],
    ['a call', [reasoning('Hm.'), start(0, 'now')]],
  ])('is none with %s after it', (_, deltas) => {
    const splice = spliceOf();
    spliced(splice, ...deltas);
    expect(splice.rejection).toBeUndefined();
  });

  test('brings nothing any more, of whatever kind', () => {
    const splice = spliceOf({ mode: 'replay' });
    const after = [
      text('Other'),
      text('!'),
      reasoning('Hm'),
      refusal('No'),
      start(0, 'now'),
      ...call(1, 'now', '{}'),
    ];
    expect(spliced(splice, text('The holdfast '), text('slips'), ...after)).toEqual([]);
    expect(splice.rejection).toBe('diverged');
  });

  test('is found out at the end', () => {
    const splice = spliceOf({ mode: 'replay' });
    expect(spliced(splice, text('The holdfast'))).toEqual([]);
    expect(splice.rejection).toBe('ended_early');
  });
});

describe('reasoning', () => {
  const passed = (splice: Splice, ...deltas: Delta[]) =>
    deltas
      .flatMap((delta) => splice.accept(delta))
      .map((delta) => (delta.kind === 'reasoning' ? delta.text : delta.kind));

  test('is swallowed while it would appear in the middle of the text', () => {
    expect(passed(spliceOf(), reasoning('Let me'), reasoning(' go on'))).toEqual([]);
  });

  test('passes once new text has come', () => {
    const splice = spliceOf();
    expect(passed(splice, reasoning('a'), text(' zealously'), reasoning('b'))).toEqual(['text', 'b']);
  });

  test('passes once a call has begun', () => {
    expect(passed(spliceOf(), reasoning('a'), start(0, 'now'), reasoning('b'))).toEqual(['tool_start', 'b']);
  });

  describe('of an answer that is made again', () => {
    const replayed = (seen: string) => spliceOf({ mode: 'replay', reasoning: seen });

    test('is shown behind the text from where it was cut', () => {
      const again = [
        reasoning('Look: '),
        text(DELIVERED),
        reasoning('It holds'),
        reasoning('. So'),
        text('.'),
      ];
      expect(passed(replayed('Look: It hol'), ...again)).toEqual(['ds', '. So', 'text']);
    });

    test('is shown once its text is over where all of the other thoughts have come again', () => {
      const splice = replayed('Look: ');
      const again = [reasoning('Look: '), text(DELIVERED)];
      expect(passed(splice, ...again)).toEqual([]);
      expect(splice.isOpen).toBe(true);
      expect(passed(splice, reasoning('It holds.'))).toEqual(['It holds.']);
    });

    test('is shown behind a call and the text from where it was cut', () => {
      const again = [start(0, 'now'), text(DELIVERED), reasoning('It holds'), text('.')];
      expect(passed(replayed('It hol'), ...again)).toEqual(['tool_start', 'ds', 'text']);
    });

    test('is shown behind the calls that have come again, where the client has none of it yet', () => {
      const tides = { index: 0, id: 'call_1', name: 'tides', state: 'closed', followed: undefined } as const;
      const splice = spliceOf({ mode: 'replay', text: '', calls: [{ ...tides, arguments: '{}' }] });
      const before = [reasoning('Hm.'), ...call(1, 'tides', '{}')];
      expect(passed(splice, ...before)).toEqual([]);
      expect(passed(splice, reasoning('Look: '), text('Hi'))).toEqual(['Look: ', 'text']);
    });

    test('is left out where there is more of it before the text than was shown', () => {
      const again = [
        reasoning('Look: it'),
        reasoning(' is one'),
        text(DELIVERED),
        text('.'),
        reasoning('So.'),
      ];
      expect(passed(replayed('Look: '), ...again)).toEqual(['text', 'So.']);
    });

    test('is left out where it differs, until new text has come', () => {
      const again = [reasoning('Let me see'), text(DELIVERED), text('.'), reasoning('So.')];
      expect(passed(replayed('Look: '), ...again)).toEqual(['text', 'So.']);
    });
  });

  test('continues where the dialect continues it', () => {
    const thinking = { text: '', reasoning: 'Let me', continuesReasoning: true };
    expect(passed(spliceOf(thinking), reasoning(' see.'))).toEqual([' see.']);
  });

  test('is swallowed after text even where the dialect continues it', () => {
    expect(passed(spliceOf({ continuesReasoning: true }), reasoning(' see.'))).toEqual([]);
  });

  describe('after a restart', () => {
    const restarted = (seen: string, thoughts?: 'whole' | 'cut') =>
      spliceOf({ mode: 'restart', text: '', reasoning: seen, thoughts });

    test('is shown in full beside items that were cut', () => {
      const splice = restarted('Let me see', 'cut');
      expect(passed(splice, reasoning('Let me'), reasoning(' think.'), text('It'))).toEqual([
        'Let me',
        ' think.',
        'text',
      ]);
      expect(splice.isOpen).toBe(true);
    });

    test('is swallowed after an item that is whole, even where it continues it', () => {
      const splice = restarted('Let me see', 'whole');
      const deltas = [reasoning('Let me see'), reasoning('. Yes.'), text('It'), reasoning('Hm.')];
      expect(passed(splice, ...deltas)).toEqual(['text', 'Hm.']);
    });

    test('passes if the client has seen none', () => {
      const splice = restarted('');
      expect(splice.isOpen).toBe(true);
      expect(passed(splice, reasoning('Let me'))).toEqual(['Let me']);
    });

    test('is swallowed as far as the client has seen it', () => {
      const splice = restarted('Let me see');
      expect(splice.isOpen).toBe(false);
      expect(passed(splice, reasoning('Let '), reasoning('me see'), reasoning('. So'))).toEqual(['. So']);
      expect(splice.isOpen).toBe(true);
    });

    test('continues in the middle of a delta', () => {
      expect(passed(restarted('Let me'), reasoning('Let me see'), reasoning('.'))).toEqual([' see', '.']);
    });

    test('is swallowed altogether if it is another one', () => {
      const splice = restarted('Let me see');
      expect(passed(splice, reasoning('Let us think'), reasoning('Let me see more'))).toEqual([]);
      expect(passed(splice, text('So:'), reasoning('b'))).toEqual(['text', 'b']);
    });
  });
});

describe('a stop sequence across the seam', () => {
  test('ends the answer', () => {
    const splice = spliceOf({ text: 'It grips. E', stops: ['END'] });
    expect(spliced(splice, text('ND of it'), text(' all'), start(0, 'now'))).toEqual([]);
    expect(splice).toMatchObject({ stopReason: 'stop', isOpen: false });
  });

  test('that was only feared gives out what was held', () => {
    const splice = spliceOf({ text: 'It grips. E', stops: ['END'] });
    expect(spliced(splice, text('N'))).toEqual([text('N')]);
    expect(splice.stopReason).toBeUndefined();
  });
});

describe("the client's limit, where more was asked for so that an anchor can be repeated", () => {
  const LONG = 'The holdfast of a kelp grips the rock';
  const nudged = (token_limit: number) =>
    spliceOf({ mode: 'nudge', text: LONG, prefix: prefixOf(LONG, true), token_limit });
  const rest = [text(' and'), text(' holds'), text(' on'), text(' to it'), text(' for years.')];

  test('ends an answer that continues without the anchor', () => {
    const splice = nudged(3);
    const said = spliced(splice, ...rest).map((delta) => ('text' in delta ? delta.text : ''));
    expect(said.join('')).toBe(' and holds on');
    expect(splice).toMatchObject({ stopReason: 'length', isOpen: false });
  });

  test('ends one whose deltas pass unchanged', () => {
    const splice = nudged(3);
    const [first = text(''), ...others] = [text(' and holds the rock for'), ...rest];
    expect(splice.accept(first)).toEqual([first]);
    expect(splice.isOpen).toBe(true);
    const passed = others.filter((delta) => splice.isOpen && splice.allows([delta]));
    // The first delta is long enough to count as several tokens.
    expect(passed.length).toBeLessThan(3);
    expect(splice).toMatchObject({ stopReason: 'length', isOpen: false });
  });

  test('counts nothing of the anchor where it is repeated, which leaves the limit to the provider', () => {
    const splice = nudged(3);
    const said = spliced(splice, text(LONG.slice(0, 20)), text(LONG.slice(20)), ...rest);
    expect(said.map((delta) => ('text' in delta ? delta.text : '')).join('')).toBe(
      ' and holds on to it for years.',
    );
    expect(splice).toMatchObject({ seam: 'anchored', stopReason: undefined, isOpen: true });
  });

  test('is not reached by an answer that ends with the last of its tokens', () => {
    const splice = nudged(rest.length);
    expect(spliced(splice, ...rest)).toHaveLength(rest.length);
    expect(splice.stopReason).toBeUndefined();
  });
});

test.each<[string, Delta]>([
  ['arguments', { kind: 'tool_arguments', index: 0, text: '{}' }],
  ['a refusal', refusal('No')],
  ['the usage', { kind: 'usage', usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } }],
])('%s pass by the seam', (_, delta) => {
  expect(spliceOf().accept(delta)).toEqual([delta]);
});

test('a preamble to nothing but a call is dropped, and one to nothing at all is no answer', () => {
  const nudged = () => spliceOf({ mode: 'nudge' });
  const preamble = text('Sure, here is the rest:\n');
  expect(spliced(nudged(), preamble, start(0, 'now'))).toEqual([start(0, 'now')]);
  const alone = nudged();
  expect(spliced(alone, preamble)).toEqual([]);
  expect(alone.rejection).toBe('no_continuation');
});

test('text that is held back does not hold up a call', () => {
  const splice = spliceOf();
  expect(splice.accept(text(' t'))).toEqual([]);
  expect(splice.accept(start(0, 'now'))).toEqual([start(0, 'now')]);
  expect(splice.end()).toEqual([text(' t')]);
});

describe('where blocks follow one another', () => {
  const ordered = (changes: Partial<SpliceOptions> & { readonly text?: string } = {}) =>
    spliceOf({ ordered: true, ...changes });

  test('text that is held back comes before the call that ends it, and what follows is new', () => {
    const splice = ordered();
    expect(splice.accept(text(' grips'))).toEqual([]);
    expect(splice.accept(start(0, 'now'))).toEqual([text(' grips'), start(0, 'now')]);
    expect(splice.isOpen).toBe(true);
  });

  test('a call at once leaves nothing to be joined, white space included', () => {
    const splice = ordered({ text: 'The holdfast grips. ' });
    expect(splice.accept(start(0, 'now'))).toEqual([start(0, 'now')]);
    expect(splice.isOpen).toBe(true);
    expect(splice.accept(text(' So.'))).toEqual([text(' So.')]);
  });

  test('text that cannot be joined rejects the call as well', () => {
    const splice = ordered({ text: `${DELIVERED} the rock in the surge.` });
    expect(spliced(splice, text(`${DELIVERED} the rock on the pier`), start(0, 'now'))).toEqual([]);
    expect(splice.rejection).toBe('diverged');
  });

  test('text that might have been a stop sequence comes before the call, too', () => {
    const splice = ordered({ text: 'It grips. E', stops: ['END'], mode: 'replay' });
    expect(splice.accept(text('It grips. EN'))).toEqual([]);
    expect(splice.accept(start(0, 'now'))).toEqual([text('N'), start(0, 'now')]);
    expect(splice.end()).toEqual([]);
  });

  test('while the answer is repeated, calls pass and reasoning does not', () => {
    const splice = ordered({ mode: 'replay' });
    expect(splice.accept(start(0, 'now'))).toEqual([start(0, 'now')]);
    expect(splice.accept(reasoning('Hm.'))).toEqual([]);
    expect(spliced(splice, text(`${DELIVERED} it.`))).toEqual([text(' it.')]);
  });
});

test('the stop sequence that ended the answer is known', () => {
  const splice = spliceOf({ text: 'It grips. E', stops: ['STOP', 'END'] });
  expect(splice.stopSequence).toBeUndefined();
  spliced(splice, text('ND of it'));
  expect(splice.stopSequence).toBe('END');
});
