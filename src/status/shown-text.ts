import { CONTROLS } from '../lib/text.ts';

/** Foreign text as it may be shown: on one line, and at most `characters_max` long. */
export function shownText(text: string, characters_max: number): string {
  const short = text.length > characters_max ? `${text.slice(0, characters_max - 1)}…` : text;
  return short.toWellFormed().replace(CONTROLS, '\ufffd');
}
