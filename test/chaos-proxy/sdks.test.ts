import { describe, expect, test } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { PAGE, seen, type Written } from './sdk-faults.ts';
import { DOCUMENT_READERS, STREAM_READERS } from './sdk-readers.ts';

/** The rows of the tables in docs/chaos.md. */
const IN_STREAMS: readonly Written[] = [
  ['cut', 'reset@start'],
  ['cut', 'reset@40'],
  ['cut', 'reset@tool'],
  ['cut', 'reset@end'],
  ['cut', 'close@start'],
  ['cut', 'close@40'],
  ['cut', 'close@tool'],
  ['cut', 'close@end'],
  ['cut', 'truncate@40'],
  ['stall', '20ms@40'],
  ['error', 'overloaded@start'],
  ['error', 'overloaded@40'],
  ['error', 'rate_limit@40'],
  ['error', 'server_error@40'],
  ['error', '429'],
  ['error', '500'],
  ['error', '503'],
  ['error', '529'],
];
const IN_DOCUMENTS: readonly Written[] = [
  ['cut', 'reset@50%'],
  ['cut', 'close@50%'],
  ['cut', 'truncate@50%'],
  ['cut', 'reset@tool'],
  ['stall', '20ms@50%'],
  ['error', 'overloaded'],
  ['error', 'rate_limit'],
  ['error', 'server_error'],
];

describe('docs/chaos.md says what SDKs make of each fault', () => {
  test.each(IN_STREAMS)('in a stream: --%s %s', async (...written) => {
    const cells = [];
    for (const reader of Object.values(STREAM_READERS)) cells.push(await seen(reader, written));
    expect(PAGE).toContain(`| \`--${written.join(' ')}\` | ${cells.join(' | ')} |`);
  });

  test.each(IN_DOCUMENTS)('in a document: --%s %s', async (...written) => {
    const cells = [];
    for (const reader of Object.values(DOCUMENT_READERS)) cells.push(await seen(reader, written));
    const errors = cells.map((cell) => cell.replace(/, \d+$/, ''));
    expect(PAGE).toContain(`| \`--${written.join(' ')}\` | ${errors.join(' | ')} |`);
  });

  test('and of no other, and by which SDKs', () => {
    const rows = PAGE.filter((line) => line.startsWith('| `--') && line.split(' | ').length === 5);
    expect(rows).toHaveLength(IN_STREAMS.length + IN_DOCUMENTS.length);
    const { openai, '@anthropic-ai/sdk': anthropic } = manifest.devDependencies;
    expect(PAGE.join('\n')).toContain(`\`openai\` ${openai} and \`@anthropic-ai/sdk\` ${anthropic} on Node`);
  });
});
