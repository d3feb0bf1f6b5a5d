import { CONTROLS } from '../lib/text.ts';

/** Untrusted text for display: on one line, at most `characters_max` long. */
export function shownText(text: string, characters_max: number): string {
  const short = text.length > characters_max ? `${text.slice(0, characters_max - 1)}…` : text;
  return short.toWellFormed().replace(CONTROLS, '\ufffd');
}
