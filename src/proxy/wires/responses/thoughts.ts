import { isObject } from '../../../lib/json.ts';
import { type Json, type ResponsesData, textIn, typeOf } from './data.ts';

/** What is encrypted of an item. */
export const secretOf = (item: object): string =>
  'encrypted_content' in item ? textIn(item.encrypted_content) : '';

/** Thoughts that this event ends, if their provider takes them back: they say in it what they are, encrypted. */
export function sealedIn({ type, item }: ResponsesData): Json | undefined {
  const isEnd = type === 'response.output_item.done';
  if (!isEnd || !isObject(item) || typeOf(item) !== 'reasoning' || secretOf(item) === '') return undefined;
  return item;
}
