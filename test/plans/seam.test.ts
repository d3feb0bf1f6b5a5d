import { describe, expect, test } from 'vitest';
import type { Mode } from '../../src/plans/continuation.ts';
import { Seam, type SeamKind, type SeamRejection } from '../../src/plans/seam.ts';
import { type Joined, join, pieces, seamOptions } from './joining.ts';

const LONG =
  'The holdfast of a kelp is not a root: it takes up nothing, it only grips. ' +
  'What grows above it may be torn away by the surge, and the stipe may snap; ' +
  'as long as the holdfast keeps its rock, the plant will grow again from where it was cut off';

interface Situation {
  readonly mode: Mode;
  readonly delivered: string;
  readonly says: string;
  /** What the client has in the end; an attempt that is rejected adds nothing. */
  readonly text: string | { readonly rejected: SeamRejection };
  readonly kind?: SeamKind;
  readonly echoes?: boolean;
}

/** The same at every chunking: a character at a time, three at a time, all at once. */
function situations(table: Readonly<Record<string, Situation>>): void {
  test.each(Object.entries(table))('%s', (_, { mode, delivered, says, text, kind, echoes }) => {
    const expected: Partial<Joined> =
      typeof text === 'string' ? { text, rejected: undefined } : { ...text, emitted: '' };
    for (const chunks of [pieces(says, [1]), pieces(says, [3]), [says]]) {
      const joined = join(seamOptions(mode, delivered, echoes), chunks);
      expect(joined, `in ${chunks.length} chunks`).toMatchObject({ ...expected, ...(kind && { kind }) });
    }
  });
}

describe('nothing is repeated', () => {
  situations({
    'the model goes straight on': {
      mode: 'prefill',
      delivered: 'Grip the rock',
      says: ' through the surge.',
      text: 'Grip the rock through the surge.',
      kind: 'clean',
    },
    'within a word': {
      mode: 'prefill',
      delivered: 'Grip the ro',
      says: 'ck.',
      text: 'Grip the rock.',
      kind: 'clean',
    },
    'when nudged': {
      mode: 'nudge',
      delivered: 'Grip the rock',
      says: ' through the surge.',
      text: 'Grip the rock through the surge.',
      kind: 'clean',
    },
    'there is nothing to add': { mode: 'prefill', delivered: 'Done.', says: '', text: 'Done.' },
    'nothing was delivered': { mode: 'prefill', delivered: '', says: 'Grip', text: 'Grip', kind: 'clean' },
    'words that occurred in the middle of the answer stay': {
      mode: 'prefill',
      delivered: LONG,
      says: ' What grows above it may be torn away by the surge, again.',
      text: `${LONG} What grows above it may be torn away by the surge, again.`,
    },
    'the prefix in the middle of the continuation stays': {
      mode: 'nudge',
      delivered: 'the plant will grow again',
      says: '. Indeed: the plant will grow again.',
      text: 'the plant will grow again. Indeed: the plant will grow again.',
    },
  });
});

describe('echo of the prefix', () => {
  situations({
    'is taken off': {
      mode: 'prefill',
      delivered: 'Hello wonderful world',
      says: 'Hello wonderful world, how are you?',
      text: 'Hello wonderful world, how are you?',
      kind: 'echo',
    },
    'with the trailing space moved to the text after it (Mistral)': {
      mode: 'prefill',
      delivered: 'Hello, ',
      says: 'Hello, how are you?',
      text: 'Hello, how are you?',
      kind: 'echo',
      echoes: true,
    },
    'of a long prefix is still called one where the dialect echoes': {
      mode: 'prefill',
      delivered: LONG,
      says: `${LONG}. The end.`,
      text: `${LONG}. The end.`,
      kind: 'echo',
      echoes: true,
    },
    'with a space in front': {
      mode: 'prefill',
      delivered: 'Hello wonderful world',
      says: ' Hello wonderful world!',
      text: 'Hello wonderful world!',
    },
    'of a prefix that itself begins with a space': {
      mode: 'prefill',
      delivered: ' Hello wonderful world',
      says: ' Hello wonderful world!',
      text: ' Hello wonderful world!',
    },
    'that is all that was said': {
      mode: 'prefill',
      delivered: 'Hello wonderful world\n',
      says: 'Hello wonderful world',
      text: 'Hello wonderful world\n',
    },
    'of one word': {
      mode: 'prefill',
      delivered: 'Hello',
      says: 'Hello world',
      text: 'Hello world',
      kind: 'echo',
    },
    'of one word, and nothing else': { mode: 'prefill', delivered: 'Hello', says: 'Hello', text: 'Hello' },
    'of one word with punctuation': { mode: 'prefill', delivered: 'Well:', says: 'Well:so', text: 'Well:so' },
    'of one word that the model was asked to repeat': {
      mode: 'nudge',
      delivered: 'Hell',
      says: 'Hello',
      text: 'Hello',
      kind: 'echo',
    },
  });
});

describe('too short to be an echo', () => {
  situations({
    'a word that goes on with the letters it began with': {
      mode: 'prefill',
      delivered: 'Can',
      says: 'Cans',
      text: 'CanCans',
    },
    'the same word after a space': {
      mode: 'prefill',
      delivered: 'Bora',
      says: ' Bora',
      text: 'Bora Bora',
    },
    'one letter': { mode: 'nudge', delivered: 'l', says: 'lama', text: 'llama' },
    'what repeats itself anyway': { mode: 'nudge', delivered: 'haha', says: 'haha!', text: 'hahahaha!' },
  });
});

describe('restart from the top', () => {
  const restarted = `${LONG}, and hold on.`;
  situations({
    'with the same words is swallowed as far as they were delivered': {
      mode: 'prefill',
      delivered: LONG.slice(0, 90),
      says: restarted,
      text: restarted,
    },
    'when nudged, too': { mode: 'nudge', delivered: LONG.slice(0, 90), says: restarted, text: restarted },
    'with the whitespace that was cut off': {
      mode: 'prefill',
      delivered: `${LONG}.\n\n`,
      says: `${LONG}.\n\nThe end.`,
      text: `${LONG}.\n\nThe end.`,
    },
    'with less whitespace than was delivered': {
      mode: 'prefill',
      delivered: `${LONG}.\n\n`,
      says: `${LONG}.\nThe end.`,
      text: `${LONG}.\n\nThe end.`,
    },
    'cannot be joined once it diverges': {
      mode: 'prefill',
      delivered: LONG,
      says: `${LONG.slice(0, 60)}but something else entirely`,
      text: { rejected: 'diverged' },
    },
    'cannot be joined once it diverges, late': {
      mode: 'nudge',
      delivered: LONG,
      says: `${LONG.slice(0, 200)}but something else entirely`,
      text: { rejected: 'diverged' },
    },
    'of a short answer is recognised sooner': {
      mode: 'prefill',
      delivered: LONG.slice(0, 60),
      says: `${LONG.slice(0, 30)} tall tree`,
      text: { rejected: 'diverged' },
    },
    'of a long answer is not assumed from a few words': {
      mode: 'prefill',
      delivered: LONG,
      says: `${LONG.slice(0, 30)}, we said.`,
      text: `${LONG}${LONG.slice(0, 30)}, we said.`,
    },
    'that ends before it comes to anything new': {
      mode: 'prefill',
      delivered: LONG,
      says: LONG.slice(0, 100),
      text: { rejected: 'ended_early' },
    },
    'that ends where the answer was cut': { mode: 'nudge', delivered: LONG, says: LONG, text: LONG },
  });

  test('is called one, unless it could as well be an echo', () => {
    const { kind } = join(seamOptions('prefill', LONG), pieces(`${LONG}.`, [5]));
    expect(kind).toBe('restart');
  });
});

describe('repeated tail', () => {
  const tail = (length: number) => LONG.slice(-length);
  situations({
    'at the threshold of a prefill': {
      mode: 'prefill',
      delivered: LONG,
      says: `${tail(24)} at.`,
      text: `${LONG} at.`,
      kind: 'overlap',
    },
    'below the threshold of a prefill': {
      mode: 'prefill',
      delivered: LONG,
      says: `${tail(23)} at.`,
      text: `${LONG}${tail(23)} at.`,
      kind: 'clean',
    },
    'longer than what is held back otherwise': {
      mode: 'prefill',
      delivered: LONG,
      says: `${tail(150)} at.`,
      text: `${LONG} at.`,
      kind: 'overlap',
    },
    'at the threshold of a nudge': {
      mode: 'nudge',
      delivered: LONG,
      says: 'was cut off at.',
      text: `${LONG} at.`,
      kind: 'overlap',
    },
    'below the threshold of a nudge': {
      mode: 'nudge',
      delivered: LONG,
      says: 'cut off at.',
      text: `${LONG}cut off at.`,
    },
    'within a word': {
      mode: 'nudge',
      delivered: 'It was a wonderfu',
      says: 'was a wonderful day',
      text: 'It was a wonderful day',
      kind: 'overlap',
    },
    'with the whitespace after it': {
      mode: 'nudge',
      delivered: `${LONG}\n\n`,
      says: 'from where it was cut off\n\nThe end.',
      text: `${LONG}\n\nThe end.`,
      kind: 'overlap',
    },
    'one word is too little where it was not asked for': {
      mode: 'nudge',
      delivered: 'The unmistakable Kauffmannstrasse',
      says: ' Kauffmannstrasse is a street.',
      text: 'The unmistakable Kauffmannstrasse Kauffmannstrasse is a street.',
      kind: 'clean',
    },
    'in a script without spaces': {
      mode: 'nudge',
      delivered:
        '海带的固着器不是根，它不吸收任何养分，只是牢牢地抓住岩石。只要固着器还在岩石上，植物就会从被切断的地方重新生长，海浪再大也不怕，潮水涨了又退，退了又涨',
      says: '它不吸收任何养分，只是牢牢地抓住岩石。只要固着器还在岩石上，植物就会从被切断的地方重新生长，海浪再大也不怕，潮水涨了又退，退了又涨。完',
      text: '海带的固着器不是根，它不吸收任何养分，只是牢牢地抓住岩石。只要固着器还在岩石上，植物就会从被切断的地方重新生长，海浪再大也不怕，潮水涨了又退，退了又涨。完',
      kind: 'overlap',
    },
  });
});

describe('text that overlaps with itself everywhere is not cut', () => {
  const rows: Record<string, string> = {
    'a row of dashes': '-'.repeat(40),
    'a table rule': '|---|---|---|---|---|---|',
    'a wide table rule': '| ------ | ------ | ------ |',
    laughter: 'hahahahahahahahahahahahahaha',
    'a row of numbers': '0.00, 0.00, 0.00, 0.00, 0.00, ',
    'line after line': 'null\nnull\nnull\nnull\nnull\nnull\n',
  };
  situations(
    Object.fromEntries(
      Object.entries(rows).flatMap(([title, row]) =>
        (['prefill', 'nudge'] as const).map((mode) => [
          `${title}: ${mode}`,
          {
            mode,
            delivered: `As follows: ${row}`,
            says: `${row} and so on`,
            text: `As follows: ${row}${row} and so on`,
          },
        ]),
      ),
    ),
  );
});

describe('half a word', () => {
  situations({
    'that the model begins again': {
      mode: 'nudge',
      delivered: 'I took the wonder',
      says: 'wonderful road',
      text: 'I took the wonderful road',
      kind: 'word',
    },
    'with a bracket in front': {
      mode: 'nudge',
      delivered: 'I took (in wonder',
      says: '(in wonderful weather)',
      text: 'I took (in wonderful weather)',
    },
    'of which only the letters are repeated': {
      mode: 'nudge',
      delivered: 'I took the **wonder',
      says: 'wonderful** road',
      text: 'I took the **wonderful** road',
      kind: 'word',
    },
    'that is a number': {
      mode: 'nudge',
      delivered: 'Pi is about 3.14',
      says: '3.14159',
      text: 'Pi is about 3.14159',
      kind: 'word',
    },
    'is left alone by a prefill, which goes on from the very token': {
      mode: 'prefill',
      delivered: 'I took the wonder',
      says: 'wonderful',
      text: 'I took the wonderwonderful',
    },
    'is a whole one after whitespace': {
      mode: 'nudge',
      delivered: 'He who ',
      says: 'who knows',
      text: 'He who who knows',
    },
    'is another one after a space': {
      mode: 'nudge',
      delivered: 'She had',
      says: ' had enough',
      text: 'She had had enough',
    },
    'of one letter may as well go on': {
      mode: 'nudge',
      delivered: 'Look, a l',
      says: 'lama',
      text: 'Look, a llama',
    },
    'that repeats itself': {
      mode: 'nudge',
      delivered: 'He said haha',
      says: 'haha!',
      text: 'He said hahahaha!',
    },
  });
});

describe('whitespace that was trimmed from the prefix', () => {
  const trimming = (trimmed: string, says: string, text: string, kind?: SeamKind): Situation => ({
    mode: 'prefill',
    delivered: `Item${trimmed}`,
    says,
    text: `Item${trimmed}${text}`,
    ...(kind && { kind }),
  });
  situations({
    'a space comes again': trimming(' ', ' two', 'two', 'whitespace'),
    'a space does not come again': trimming(' ', 'two', 'two', 'clean'),
    'two line breaks come again': trimming('\n\n', '\n\nNext', 'Next', 'whitespace'),
    'one of two line breaks comes again': trimming('\n\n', '\nNext', 'Next', 'whitespace'),
    'one of two Windows line breaks comes again': trimming('\r\n\r\n', '\r\nNext', 'Next'),
    'neither line break comes again': trimming('\n\n', 'Next', 'Next', 'clean'),
    'more line breaks come': trimming('\n', '\n\nNext', '\nNext', 'whitespace'),
    'an indent comes again': trimming('\n    ', '\n    x = 1', 'x = 1', 'whitespace'),
    'another indent is the model’s own': trimming('\n    ', '\n  x = 1', '\n  x = 1'),
    'no indent is the model’s own': trimming('\n    ', '\nx = 1', '\nx = 1'),
    'other whitespace is the model’s own': trimming(' ', '\tNext', '\tNext'),
    'some of it and then other whitespace': trimming('\n\n', '\n Next', '\n Next'),
    'it is all that comes': trimming('\n\n', '\n', ''),
    'it is all that comes, and more': trimming('\n', '\n\n', '\n'),
  });
});

describe('half a surrogate pair that was delivered', () => {
  const half = '\ud83d';
  situations({
    'is completed by the whole one': {
      mode: 'prefill',
      delivered: `Hold on ${half}`,
      says: ' 🙂!',
      text: 'Hold on 🙂!',
    },
    'without the space before it': {
      mode: 'prefill',
      delivered: `Hold on ${half}`,
      says: '🙂!',
      text: 'Hold on 🙂!',
    },
    'after one of two line breaks': {
      mode: 'nudge',
      delivered: `Hold on\n\n${half}`,
      says: 'Hold on\n🙂!',
      text: 'Hold on\n\n🙂!',
    },
    'in an answer that starts again': {
      mode: 'prefill',
      delivered: `${LONG}\n\n${half}`,
      says: `${LONG}\n🙂!`,
      text: `${LONG}\n\n🙂!`,
    },
    'in a replay': { mode: 'replay', delivered: `Hold on ${half}`, says: 'Hold on 🙂!', text: 'Hold on 🙂!' },
    'is not completed by what is none': {
      mode: 'prefill',
      delivered: `Hold on${half}`,
      says: '!',
      text: `Hold on${half}!`,
    },
  });
});

describe('code block', () => {
  situations({
    'opened a second time': {
      mode: 'prefill',
      delivered: 'Like this:\n```ts\nconst x = 1;\n',
      says: '```ts\nconst y = 2;',
      text: 'Like this:\n```ts\nconst x = 1;\nconst y = 2;',
      kind: 'fence',
    },
    'opened far above, and a second time': {
      mode: 'nudge',
      delivered: `So:\n\`\`\`text\n${LONG}\n${LONG}\n${LONG}\n`,
      says: '```text\nThe end.',
      text: `So:\n\`\`\`text\n${LONG}\n${LONG}\n${LONG}\nThe end.`,
      kind: 'fence',
    },
    'opened a second time after its first line only': {
      mode: 'prefill',
      delivered: 'So:\n```ts',
      says: '```ts\nconst x = 1;',
      text: 'So:\n```ts\nconst x = 1;',
    },
    'opened a second time after its first line and a break': {
      mode: 'prefill',
      delivered: 'So:\n```ts\n',
      says: '```ts\nconst x = 1;',
      text: 'So:\n```ts\nconst x = 1;',
    },
    'with a fence of its own after a line break': {
      mode: 'prefill',
      delivered: '```md\nA block:',
      says: '\n```ts\nconst x = 1;',
      text: '```md\nA block:\n```ts\nconst x = 1;',
    },
    'closed by a bare fence': {
      mode: 'prefill',
      delivered: 'Like this:\n```ts\nconst x = 1;\n',
      says: '```\nThat is all.',
      text: 'Like this:\n```ts\nconst x = 1;\n```\nThat is all.',
    },
    'opened anew after it was closed': {
      mode: 'prefill',
      delivered: '```ts\nconst x = 1;\n```\n',
      says: '```ts\nconst y = 2;',
      text: '```ts\nconst x = 1;\n```\n```ts\nconst y = 2;',
    },
    'whose fence is all that comes': {
      mode: 'prefill',
      delivered: 'Like this:\n```ts\nconst x = 1;\n',
      says: '```',
      text: 'Like this:\n```ts\nconst x = 1;\n```',
    },
  });
});

describe('chatter when nudged', () => {
  const saying = (says: string, text: Situation['text']): Situation => ({
    mode: 'nudge',
    delivered: 'It grips the rock',
    says,
    text: typeof text === 'string' ? `It grips the rock${text}` : text,
  });
  situations({
    'a first line of its own is dropped': saying('Sure, here is the rest:\n and holds on.', ' and holds on.'),
    'a lead-in is dropped': saying('Continuing: and holds on.', 'and holds on.'),
    'before the words that were asked for': saying(
      'Of course!\nIt grips the rock and holds on.',
      ' and holds on.',
    ),
    'two of them': saying('Sure!\nHere’s the rest:\n and holds on.', ' and holds on.'),
    'an answer to the nudge instead of the user is none': saying(
      "I'm sorry, but I don't have any previous message.",
      { rejected: 'no_continuation' },
    ),
    'a refusal after a preamble': saying('Okay.\nI don’t see what you mean.', {
      rejected: 'no_continuation',
    }),
    'a preamble and nothing else is what was said': saying(
      'Sure, here is the rest:',
      'Sure, here is the rest:',
    ),
    'the same words within a sentence are the answer': saying(
      ' sure of the rest:\nit holds on.',
      ' sure of the rest:\nit holds on.',
    ),
    'a line that says something is the answer': saying(
      'Of course, there are exceptions:\n- sand',
      'Of course, there are exceptions:\n- sand',
    ),
  });

  situations({
    'a prefill is never chatter': {
      mode: 'prefill',
      delivered: 'It grips the rock',
      says: 'Sure, here is the rest:\nand holds on.',
      text: 'It grips the rockSure, here is the rest:\nand holds on.',
    },
    'nor is it a refusal': {
      mode: 'prefill',
      delivered: 'She said: ',
      says: "I don't see why.",
      text: "She said: I don't see why.",
    },
  });
});

describe('replay', () => {
  situations({
    'equal to what was delivered': {
      mode: 'replay',
      delivered: '{"a": 1,',
      says: '{"a": 1, "b": 2}',
      text: '{"a": 1, "b": 2}',
      kind: 'replay',
    },
    'of nothing yet': { mode: 'replay', delivered: '', says: '{"a": 1}', text: '{"a": 1}', kind: 'replay' },
    'that diverges': {
      mode: 'replay',
      delivered: '{"a": 1,',
      says: '{"a": 2, "b": 2}',
      text: { rejected: 'diverged' },
    },
    'that diverges in whitespace': {
      mode: 'replay',
      delivered: '{ "a": 1 ',
      says: '{ "a": 1}',
      text: { rejected: 'diverged' },
    },
    'that ends early': {
      mode: 'replay',
      delivered: '{"a": 1,',
      says: '{"a"',
      text: { rejected: 'ended_early' },
    },
    'that says nothing': { mode: 'replay', delivered: '{"a"', says: '', text: { rejected: 'ended_early' } },
    'that ends where it was cut': {
      mode: 'replay',
      delivered: '{"a": 1}',
      says: '{"a": 1}',
      text: '{"a": 1}',
    },
    'that ends but for whitespace': {
      mode: 'replay',
      delivered: '{"a": 1}\n',
      says: '{"a": 1}',
      text: '{"a": 1}\n',
    },
  });
});

describe('restart after nothing but whitespace', () => {
  situations({
    'that comes again': {
      mode: 'restart',
      delivered: '\n\n',
      says: '\n\nGrip',
      text: '\n\nGrip',
      kind: 'whitespace',
    },
    'that comes again in part': { mode: 'restart', delivered: '\n\n', says: '\nGrip', text: '\n\nGrip' },
    'that does not come again': { mode: 'restart', delivered: '\n\n', says: 'Grip', text: '\n\nGrip' },
    'that is all there is': { mode: 'restart', delivered: '\n\n', says: '\n', text: '\n\n' },
    'of which there was none': { mode: 'restart', delivered: '', says: 'Grip', text: 'Grip', kind: 'clean' },
  });
});

describe('thresholds', () => {
  /** Words that come only once. */
  const words = (count: number, first = 0) =>
    Array.from({ length: count }, (_, index) => `w${(first + index) * 7919}`).join(' ');
  const short = words(25).slice(0, 199);
  const long = words(40).slice(0, 200);
  const longest = words(120);

  situations({
    'a short answer is taken to start again after 24 characters': {
      mode: 'prefill',
      delivered: short,
      says: `${short.slice(0, 24)}!`,
      text: { rejected: 'diverged' },
    },
    'a short answer is not taken to start again after 23 characters': {
      mode: 'prefill',
      delivered: short,
      says: `${short.slice(0, 23)}!`,
      text: `${short}${short.slice(0, 23)}!`,
    },
    'a long answer is taken to start again after 48 characters': {
      mode: 'prefill',
      delivered: long,
      says: `${long.slice(0, 48)}!`,
      text: { rejected: 'diverged' },
    },
    'a long answer is not taken to start again after 47 characters': {
      mode: 'prefill',
      delivered: long,
      says: `${long.slice(0, 47)}!`,
      text: `${long}${long.slice(0, 47)}!`,
    },
    'an answer longer than the window is still known from its beginning': {
      mode: 'prefill',
      delivered: longest,
      says: `${longest} end`,
      text: `${longest} end`,
    },
    'a tail is known as far as the window reaches': {
      mode: 'prefill',
      delivered: longest,
      says: `${longest.slice(-600)} end`,
      text: `${longest} end`,
      kind: 'overlap',
    },
    'a tail is not looked for beyond the window': {
      mode: 'prefill',
      delivered: longest,
      says: `${longest.slice(-601)} end`,
      text: `${longest}${longest.slice(-601)} end`,
    },
    'sixteen characters that come again are an echo, whatever follows': {
      mode: 'prefill',
      delivered: 'unmistakableness',
      says: 'unmistakablenesses',
      text: 'unmistakablenesses',
      kind: 'echo',
    },
    'fifteen characters are one only where a word ends': {
      mode: 'prefill',
      delivered: 'incomprehensibl',
      says: 'incomprehensible',
      text: 'incomprehensiblincomprehensible',
    },
    'two characters that the model was asked to repeat are an echo': {
      mode: 'nudge',
      delivered: 'it',
      says: 'it grips',
      text: 'it grips',
      kind: 'echo',
    },
    'eight characters of several words are a repetition when nudged': {
      mode: 'nudge',
      delivered: `${short} on a rock`,
      says: 'n a rock!',
      text: `${short} on a rock!`,
      kind: 'overlap',
    },
    'seven characters are none': {
      mode: 'nudge',
      delivered: `${short} on a rock`,
      says: ' a rock!',
      text: `${short} on a rock a rock!`,
    },
    'what the model was asked for is one, even if it is one word': {
      mode: 'nudge',
      delivered: `${short} ${'x1y2'.repeat(5)}${'abcdefghijk'.repeat(4)}`,
      says: `${'abcdefghijk'.repeat(4).slice(-40)}!`,
      text: `${short} ${'x1y2'.repeat(5)}${'abcdefghijk'.repeat(4)}!`,
    },
    'half a word of two letters may come again': {
      mode: 'nudge',
      delivered: `${short} and wo`,
      says: 'wonder',
      text: `${short} and wonder`,
      kind: 'word',
    },
    'an info string of one letter opens a code block': {
      mode: 'prefill',
      delivered: '```c\nint x;\n',
      says: '```c\nint y;',
      text: '```c\nint x;\nint y;',
    },
    'an info string that is no language does not': {
      mode: 'prefill',
      delivered: '```c\nint x;\n',
      says: `\`\`\`${'c'.repeat(33)}\nint y;`,
      text: `\`\`\`c\nint x;\n\`\`\`${'c'.repeat(33)}\nint y;`,
    },
  });
});

describe('hold-back', () => {
  test('text passes at once where it cannot be a repetition', () => {
    const seam = new Seam(seamOptions('prefill', LONG));
    expect(seam.push(' Zoster')).toEqual({ emit: ' Zoster' });
    expect(seam.isOpen).toBe(true);
    expect(seam.push('a grows')).toEqual({ emit: 'a grows' });
  });

  test.each([
    ['prefill', 64],
    ['nudge', 400],
  ] as const)('blanks are held, but not for ever: %s', (mode, limit) => {
    const seam = new Seam(seamOptions(mode, LONG));
    expect(seam.push(' '.repeat(limit - 1)).emit).toBe('');
    expect(seam.push(' ').emit).toBe(' '.repeat(limit));
  });

  test('a first line that only might be a preamble is held no longer than one', () => {
    const seam = new Seam(seamOptions('nudge', LONG));
    const line = `Sure ${'and '.repeat(40)}`;
    let pushed = 0;
    while (!seam.isOpen) seam.push(line.charAt(pushed++));
    expect(pushed).toBe(120);
  });

  test('an opening fence that does not end is held no longer than one', () => {
    const seam = new Seam(seamOptions('prefill', '```ts\nx'));
    expect(seam.push('```').emit).toBe('');
    expect(seam.push('typescript').emit).toBe('');
    expect(seam.push('-'.repeat(23)).emit).toHaveLength(36);
  });

  test('what was held comes when nothing follows', () => {
    const seam = new Seam(seamOptions('prefill', LONG));
    expect(seam.push('The holdfast').emit).toBe('');
    expect(seam.end()).toEqual({ emit: 'The holdfast' });
    expect(seam.isOpen).toBe(true);
  });
});
