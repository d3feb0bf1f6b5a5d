import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { FaultOptions } from '../../src/chaos/grammar.ts';
import { ROOT } from '../docs/pages.ts';
import { startChaos } from './chaos.ts';
import { Read, startPacedProvider } from './paced-provider.ts';
import type { Reader } from './sdk-readers.ts';

export type Written = readonly [option: keyof FaultOptions, given: string];

/** The lines of docs/chaos.md. */
export const PAGE = readFileSync(join(ROOT, 'docs/chaos.md'), 'utf8').split('\n');

/** What the application receives if the answer has this fault. */
export async function asked(reader: Reader, [option, given]: Written) {
  const read = new Read();
  const chaos = await startChaos(await startPacedProvider(read), { [option]: [given] });
  const error = await reader(chaos.url, read).then(
    () => undefined,
    (thrown: Error) => thrown,
  );
  expect(chaos.reports).toHaveLength(1);
  return { error, read };
}

/** The class of the error, or `no error`, and the number of characters that the application has read. */
export async function seen(reader: Reader, written: Written): Promise<string> {
  const { error, read } = await asked(reader, written);
  const name = error === undefined ? 'no error' : `\`${error.constructor.name}\``;
  return `${name}, ${read.characters}`;
}

/** The cells of the fault's row in the first table. */
export const cellsOf = (fault: string): readonly string[] => {
  const row = PAGE.find((line) => line.startsWith(`| \`--${fault}\` |`) && line.includes(', '));
  return row?.split(' | ').slice(1) ?? [];
};
