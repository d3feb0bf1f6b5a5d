import { describe, expect, test } from 'vitest';
import type { SeamKind, SeamRejection } from '../../../src/plans/seam/joint.ts';
import { Seam } from '../../../src/plans/seam/seam.ts';
import { type Asking, type Joined, join, pieces, seamOptions } from './joining.ts';

const LONG =
  'The holdfast of a kelp is not a root: it takes up nothing, it only grips. ' +
  'What grows above it may be torn away by the surge, and the stipe may snap; ' +
  'as long as the holdfast keeps its rock, the plant will grow again from where it was cut off';
/** What a nudge asks the model to repeat of `LONG`. */
const ANCHOR = 'again from where it was cut off';

interface Situation extends Partial<Asking> {
  readonly delivered: string;
  readonly says: string;
  /** The client's final text; a rejected attempt adds nothing. */
  readonly text: string | { readonly rejected: SeamRejection };
  readonly kind?: SeamKind;
}

/** The same result for all chunk sizes: one character, three characters, everything at once. */
function situations(asking: Asking, table: Readonly<Record<string, Situation>>): void {
  test.each(Object.entries(table))('%s', (_, { delivered, says, text, kind, ...special }) => {
    const expected: Partial<Joined> =
      typeof text === 'string' ? { text, rejected: undefined } : { ...text, emitted: '' };
    for (const chunks of [pieces(says, [1]), pieces(says, [3]), [says]]) {
      const joined = join(seamOptions(delivered, { ...asking, ...special }), chunks);
      expect(joined, `in ${chunks.length} chunks`).toMatchObject({ ...expected, ...(kind && { kind }) });
    }
  });
}

describe('a prefill that is known to be exact', () => {
  const exact: Asking = { mode: 'prefill', manner: 'exact', keepsSpace: true };
  situations(exact, {
    'continues at the very character': {
      delivered: 'Grip the ro',
      says: 'ck.',
      text: 'Grip the rock.',
      kind: 'exact',
    },
    'adds nothing': { delivered: 'Done.', says: '', text: 'Done.', kind: 'exact' },
    'may say the same line again': { delivered: 'null\n', says: 'null\nnull\n', text: 'null\nnull\nnull\n' },
    'may say the whole answer again': { delivered: LONG, says: LONG, text: LONG + LONG },
    'may open a code block inside a code block': {
      delivered: '```md\nSo:\n',
      says: '```ts\nx',
      text: '```md\nSo:\n```ts\nx',
    },
    'may begin like a preamble': { delivered: 'She said: ', says: 'Sure:\nno', text: 'She said: Sure:\nno' },
    'keeps an indent that was sent': {
      delivered: 'def f(x):\n    ',
      says: '    return x',
      text: 'def f(x):\n        return x',
    },
    'completes half a surrogate pair': { delivered: 'Hold on \ud83d', says: '🙂!', text: 'Hold on 🙂!' },
    'leaves half a surrogate pair alone that it does not complete': {
      delivered: 'Hold on\ud83d',
      says: '!',
      text: 'Hold on\ud83d!',
    },
  });

  test('holds nothing back', () => {
    const seam = new Seam(seamOptions(LONG, exact));
    expect(seam.isOpen).toBe(true);
    expect(seam.push('The holdfast of a kelp')).toEqual({ emit: 'The holdfast of a kelp' });
  });
});

describe('a prefill that is exact according to the dialect alone', () => {
  const claimed: Asking = { mode: 'prefill', manner: 'exact', isProven: false };
  const REST = ' is not a root.';
  situations(claimed, {
    'continues at the very character': {
      delivered: 'Grip the ro',
      says: 'ck.',
      text: 'Grip the rock.',
      kind: 'exact',
    },
    'adds nothing': { delivered: 'Done.', says: '', text: 'Done.', kind: 'exact' },
    'is answered anew: that leaves a doubt': {
      delivered: LONG,
      says: `${LONG} at last.`,
      text: { rejected: 'ambiguous' },
    },
    'is answered anew, behind blanks': {
      delivered: LONG,
      says: `\n\n${LONG} at last.`,
      text: { rejected: 'ambiguous' },
    },
    'is answered anew after a few words': {
      delivered: 'The holdfast',
      says: `The holdfast${REST}`,
      text: { rejected: 'ambiguous' },
    },
    'is answered anew, and there is no better way to ask': {
      delivered: LONG,
      says: LONG,
      text: LONG + LONG,
      lastResort: true,
    },
    'begins as the answer does, and then differs': {
      delivered: LONG,
      says: 'The holdfast of',
      text: `${LONG}The holdfast of`,
    },
    'may say the same short line again': {
      delivered: 'null\n',
      says: 'null\nnull\n',
      text: 'null\nnull\nnull\n',
    },
    'may repeat a beginning that the answer repeats': {
      delivered: 'All work and no play makes Jack a dull boy.\n'.repeat(3),
      says: 'All work and no play makes Jack a dull boy.\n',
      text: 'All work and no play makes Jack a dull boy.\n'.repeat(4),
    },
    'keeps the blanks in front of the rest': {
      delivered: 'Grip',
      says: '  the rock',
      text: 'Grip  the rock',
    },
    'loses the blank that was delivered': { delivered: 'Grip ', says: ' the rock', text: 'Grip the rock' },
  });
});

describe('white space that was left off an exact prefix', () => {
  const trimming = (trimmed: string, says: string, text: string): Situation => ({
    delivered: `Item${trimmed}`,
    says,
    text: `Item${trimmed}${text}`,
    kind: 'exact',
  });
  situations(
    { mode: 'prefill', manner: 'exact' },
    {
      'a space comes again': trimming(' ', ' two', 'two'),
      'a space does not come again': trimming(' ', 'two', 'two'),
      'two line breaks come again': trimming('\n\n', '\n\nNext', 'Next'),
      'one of two line breaks comes again': trimming('\n\n', '\nNext', 'Next'),
      'one of two Windows line breaks comes again': trimming('\r\n\r\n', '\r\nNext', 'Next'),
      'neither line break comes again': trimming('\n\n', 'Next', 'Next'),
      'more line breaks come': trimming('\n', '\n\nNext', '\nNext'),
      'an indent comes again': trimming('\n    ', '\n    x = 1', 'x = 1'),
      'another indent is the model’s own': trimming('\n    ', '\n  x = 1', '\n  x = 1'),
      'no indent is the model’s own': trimming('\n    ', '\nx = 1', '\nx = 1'),
      'other white space is the model’s own': trimming(' ', '\tNext', '\tNext'),
      'it is all that comes': trimming('\n\n', '\n', ''),
      'it is all that comes, and more': trimming('\n', '\n\n', '\n'),
      'a whole character comes without the space before it': trimming(' \ud83d', '🙂!', '\ude42!'),
    },
  );
});

describe('a prefill that is known to be echoed', () => {
  situations(
    { mode: 'prefill', manner: 'echo' },
    {
      'exactly the echo is taken off': {
        delivered: 'Hello wonderful world',
        says: 'Hello wonderful world, how are you?',
        text: 'Hello wonderful world, how are you?',
        kind: 'exact',
      },
      'with the trailing space moved to the text behind it': {
        delivered: 'Hello, ',
        says: 'Hello, how are you?',
        text: 'Hello, how are you?',
      },
      'with a space in front': { delivered: 'Hello', says: ' Hello!', text: 'Hello!' },
      'only once': { delivered: 'null\n', says: 'null\nnull\nnull\n', text: 'null\nnull\nnull\n' },
      'of a single character': { delivered: 'l', says: 'llama', text: 'llama' },
      'that is all that was said': { delivered: 'Hello\n', says: 'Hello', text: 'Hello\n' },
      'something else cannot be joined': { delivered: 'Hello', says: 'Help', text: { rejected: 'diverged' } },
      'half an echo cannot be joined': {
        delivered: 'Hello',
        says: 'Hell',
        text: { rejected: 'ended_early' },
      },
    },
  );
});

describe('a nudge', () => {
  const anchored = (says: string, text: string): Situation => ({
    delivered: LONG,
    says,
    text,
    kind: 'anchored',
  });
  situations(
    { mode: 'nudge' },
    {
      'takes the anchor off': anchored(`${ANCHOR}, and hold.`, `${LONG}, and hold.`),
      'takes the anchor off behind a line break': anchored(`\n${ANCHOR}, and hold.`, `${LONG}, and hold.`),
      'takes the anchor off behind a lead-in': anchored(
        `Sure, here is the rest:\n${ANCHOR}, and hold.`,
        `${LONG}, and hold.`,
      ),
      'takes the anchor off behind two lead-ins': anchored(
        `Sure!\nHere’s the rest:\n${ANCHOR}, and hold.`,
        `${LONG}, and hold.`,
      ),
      'takes the anchor off only once': anchored(`${ANCHOR}${ANCHOR}.`, `${LONG}${ANCHOR}.`),
      'takes off more than the anchor where the model repeats more': anchored(
        `${LONG.slice(-100)}, and hold.`,
        `${LONG}, and hold.`,
      ),
      'takes off the whole answer where the model begins it again': anchored(`${LONG}.`, `${LONG}.`),
      'takes nothing off behind the anchor that is all that was said': anchored(ANCHOR, LONG),
      'joins rows at the one that was asked for': {
        delivered: '0.00, 0.00, 0.00, 0.00, ',
        says: '0.00, 0.00, 0.00, 0.00, 0.00, 1.00',
        text: '0.00, 0.00, 0.00, 0.00, 0.00, 1.00',
        kind: 'anchored',
      },
      'has its white space from the anchor': {
        delivered: 'for x in xs:\n    ',
        says: 'for x in xs:\n        print(x)',
        text: 'for x in xs:\n        print(x)',
        kind: 'anchored',
      },
      'keeps the white space that was shown where the model leaves it out': {
        delivered: 'Items:\n\n',
        says: 'Items:- one',
        text: 'Items:\n\n- one',
        kind: 'anchored',
      },
      'completes half a surrogate pair': {
        delivered: 'Hold on \ud83d',
        says: 'Hold on 🙂!',
        text: 'Hold on 🙂!',
      },
      'in a script without spaces': {
        delivered: '海带的固着器不是根，它不吸收任何养分，只是牢牢地抓住岩石',
        says: '海带的固着器不是根，它不吸收任何养分，只是牢牢地抓住岩石。完',
        text: '海带的固着器不是根，它不吸收任何养分，只是牢牢地抓住岩石。完',
        kind: 'anchored',
      },
    },
  );
});

describe('a nudge that is not followed', () => {
  const first = (says: string, rejected: SeamRejection): Situation => ({
    delivered: LONG,
    says,
    text: { rejected },
  });
  situations(
    { mode: 'nudge' },
    {
      'and continues without the anchor is delivered as what it is': {
        delivered: LONG,
        says: ' by the storm.',
        text: `${LONG} by the storm.`,
        kind: 'unanchored',
      },
      'and continues within the word is delivered as what it is': {
        delivered: 'It was a wonderf',
        says: 'ul day',
        text: 'It was a wonderful day',
        kind: 'unanchored',
      },
      'by an answer to the nudge is rejected': first(
        "I'm sorry, but I don't have any message.",
        'no_continuation',
      ),
      'by such an answer behind a lead-in is rejected': first(
        'Okay.\nI don’t see what you mean.',
        'no_continuation',
      ),
      'by a lead-in and nothing else is rejected': first('Sure, here is the rest:', 'no_continuation'),
      'by a lead-in and no anchor is asked for again': first('Sure!\n by the storm.', 'ambiguous'),
      'by half of the anchor is asked for again': first('it was cut off by the storm.', 'ambiguous'),
      'by beginning the answer again in the same words is asked for again': first(
        'The holdfast of a tree is its root.',
        'diverged',
      ),
      'by a new sentence glued to a word is rejected': first(
        'Trust in a gateway is earned.',
        'no_continuation',
      ),
      'by a new sentence glued to a sentence is rejected': {
        delivered: 'The gate is open.',
        says: 'Trust in a gateway is earned.',
        text: { rejected: 'no_continuation' },
      },
      'by what may be a name within code is not': {
        delivered: 'Call response.body.',
        says: 'Json()',
        text: 'Call response.body.Json()',
      },
    },
  );
});

describe('a nudge in stronger words that is not followed either', () => {
  const last = (says: string, text: Situation['text'], kind?: SeamKind): Situation => ({
    delivered: LONG,
    says,
    text: typeof text === 'string' ? `${LONG}${text}` : text,
    ...(kind && { kind }),
  });
  situations(
    { mode: 'nudge', lastResort: true },
    {
      'takes off half of the anchor where that stands nowhere else': last(
        'it was cut off by the storm.',
        ' by the storm.',
        'aligned',
      ),
      'takes off the word within which the answer was cut': {
        delivered: 'I took the wonder',
        says: 'wonderful road',
        text: 'I took the wonderful road',
        kind: 'aligned',
      },
      'leaves a word alone that comes twice': {
        delivered: 'what a wonder, oh wonder',
        says: 'wonderful',
        text: 'what a wonder, oh wonderwonderful',
        kind: 'unanchored',
      },
      'leaves the same word behind a space alone': {
        delivered: 'She had',
        says: ' had enough',
        text: 'She had had enough',
        kind: 'unanchored',
      },
      'leaves out a lead-in': last('Sure, here is the rest:\n by the storm.', ' by the storm.', 'unanchored'),
      'leaves a row alone that stands in the answer more than once': {
        delivered: `${'| amber | 0 |\n'.repeat(60)}| jade | 1 |\n| amber | 0 |\n`,
        says: '| amber | 0 |\nEnd',
        text: `${'| amber | 0 |\n'.repeat(60)}| jade | 1 |\n| amber | 0 |\n| amber | 0 |\nEnd`,
        kind: 'unanchored',
      },
      'rejects the answer begun again': last(`${LONG.slice(0, 60)} another thing`, { rejected: 'diverged' }),
      'rejects an answer begun again that ends early': last(LONG.slice(0, 100), { rejected: 'ended_early' }),
      'accepts a common opening': last(' The holdfast of a tree', ' The holdfast of a tree', 'unanchored'),
      'rejects what shows no place to join where that is asked for': {
        ...last(' by the storm.', { rejected: 'unanchored' }),
        strict: true,
      },
    },
  );
});

describe('a prefill of which nothing is known', () => {
  situations(
    { mode: 'prefill' },
    {
      continues: {
        delivered: LONG,
        says: ' by the storm.',
        text: `${LONG} by the storm.`,
        kind: 'unanchored',
      },
      'is asked for again where it repeats the whole prefix': {
        delivered: 'Hello wonderful world',
        says: 'Hello wonderful world!',
        text: { rejected: 'ambiguous' },
      },
      'is asked for again where it repeats the end': {
        delivered: LONG,
        says: `${LONG.slice(-40)}.`,
        text: { rejected: 'ambiguous' },
      },
      'is asked for again where a row may be a repetition or the next one': {
        delivered: '{"name": "x"}\n{"name": "x"}\n',
        says: '{"name": "x"}\nEnd',
        text: { rejected: 'ambiguous' },
      },
      'is rejected where it begins the answer again': {
        delivered: LONG,
        says: 'The holdfast of a tree is its root.',
        text: { rejected: 'diverged' },
      },
      'is rejected where it answers the request': {
        delivered: LONG,
        says: 'Sure, here is the rest:\n by the storm.',
        text: { rejected: 'no_continuation' },
      },
      'is rejected where a new sentence is glued to a word': {
        delivered: LONG,
        says: 'Trust in a gateway.',
        text: { rejected: 'no_continuation' },
      },
      'is rejected where it says nothing but that it goes on': {
        delivered: `${LONG}.\n\n`,
        keepsSpace: true,
        says: 'Sure, here is the rest:\n',
        text: { rejected: 'no_continuation' },
      },
      'is asked for again where it begins the word again': {
        delivered: `${LONG} by the sto`,
        says: 'storm, and more',
        text: { rejected: 'ambiguous' },
      },
      'keeps a coincidence of few characters': {
        delivered: 'Well, look: a l',
        says: 'lama',
        text: 'Well, look: a llama',
      },
    },
  );

  situations(
    { mode: 'prefill', lastResort: true },
    {
      'takes off the only repetition there is where no nudge is possible': {
        delivered: LONG,
        says: `${LONG.slice(-40)}.`,
        text: `${LONG}.`,
        kind: 'aligned',
      },
      'keeps a repetition that may be the next row where no nudge is possible': {
        delivered: '{"name": "x"}\n{"name": "x"}\n',
        says: '{"name": "x"}\nEnd',
        text: '{"name": "x"}\n{"name": "x"}\n{"name": "x"}\nEnd',
        kind: 'unanchored',
      },
    },
  );

  test.each<[string, string, string, string | undefined]>([
    ['within a clause shows that the target is exact', LONG, ' by the storm.', 'exact'],
    ['within a word shows that the target is exact', `${LONG} by the sto`, 'rm, and more', 'exact'],
    ['with the letters before it shows nothing', `${LONG} by the st`, 'storm, and more', undefined],
    ['behind a sentence shows nothing', `${LONG}.`, ' It holds on.', undefined],
    ['from the top shows that the target answers anew', LONG, `${LONG.slice(0, 80)} tree`, 'new_turn'],
    ['in similar words as the beginning shows nothing', LONG, 'The holdfast of a tree', undefined],
    ['with a lead-in shows that the target answers anew', LONG, 'Sure, here is the rest:\nno', 'new_turn'],
  ])('an answer that continues %s', (_, delivered, says, manner) => {
    const seam = new Seam(seamOptions(delivered, { mode: 'prefill' }));
    for (const piece of pieces(says, [1])) if (!seam.isOpen) seam.push(piece);
    expect(seam.manner).toBe(manner);
  });
});

describe('a replay', () => {
  situations(
    { mode: 'replay' },
    {
      'equal to what was delivered': {
        delivered: '{"a": 1,',
        says: '{"a": 1, "b": 2}',
        text: '{"a": 1, "b": 2}',
        kind: 'exact',
      },
      'of nothing yet': { delivered: '', says: '{"a": 1}', text: '{"a": 1}', kind: 'exact' },
      'that diverges': { delivered: '{"a": 1,', says: '{"a": 2, "b": 2}', text: { rejected: 'diverged' } },
      'that diverges in white space': {
        delivered: '{ "a": 1 ',
        says: '{ "a": 1}',
        text: { rejected: 'diverged' },
      },
      'that ends early': { delivered: '{"a": 1,', says: '{"a"', text: { rejected: 'ended_early' } },
      'that says nothing': { delivered: '{"a"', says: '', text: { rejected: 'ended_early' } },
      'that ends where it was cut': { delivered: '{"a": 1}', says: '{"a": 1}', text: '{"a": 1}' },
      'that ends but for white space': { delivered: '{"a": 1}\n', says: '{"a": 1}', text: '{"a": 1}\n' },
      'of half a surrogate pair': { delivered: 'Hold \ud83d', says: 'Hold 🙂!', text: 'Hold 🙂!' },
    },
  );
});

describe('a restart after nothing but white space', () => {
  situations(
    { mode: 'restart' },
    {
      'that comes again': { delivered: '\n\n', says: '\n\nGrip', text: '\n\nGrip', kind: 'exact' },
      'that comes again in part': { delivered: '\n\n', says: '\nGrip', text: '\n\nGrip' },
      'that does not come again': { delivered: '\n\n', says: 'Grip', text: '\n\nGrip' },
      'that is all there is': { delivered: '\n\n', says: '\n', text: '\n\n' },
      'of which there was none': { delivered: '', says: 'Grip', text: 'Grip', kind: 'exact' },
    },
  );
});

describe('hold-back', () => {
  test.each(['nudge', 'prefill'] as const)('text passes as soon as it cannot be a repetition: %s', (mode) => {
    const seam = new Seam(seamOptions(LONG, { mode }));
    expect(seam.push(' Z').emit).toBe('');
    expect(seam.push('ostera')).toEqual({ emit: ' Zostera' });
    expect(seam.isOpen).toBe(true);
    expect(seam.push(' grows')).toEqual({ emit: ' grows' });
  });

  test.each(['nudge', 'prefill'] as const)('blanks are held, but not for ever: %s', (mode) => {
    const seam = new Seam(seamOptions(LONG, { mode }));
    expect(seam.push(' '.repeat(399)).emit).toBe('');
    expect(seam.push(' ').emit).toBe(' '.repeat(400));
  });

  test('a first line that only might be a lead-in is held no longer than one', () => {
    const seam = new Seam(seamOptions(LONG, { mode: 'nudge' }));
    const line = ` Sure ${'and '.repeat(40)}`;
    let pushed = 0;
    while (!seam.isOpen) seam.push(line.charAt(pushed++));
    expect(pushed).toBeLessThanOrEqual(122);
  });

  test('a call that begins lets through what was held', () => {
    const seam = new Seam(seamOptions(LONG, { mode: 'nudge', lastResort: true }));
    expect(seam.push(' b').emit).toBe('');
    expect(seam.release()).toEqual({ emit: ' b' });
    expect(seam.isOpen).toBe(true);
  });
});
