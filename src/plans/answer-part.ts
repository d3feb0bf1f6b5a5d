import type { Delta } from './delta.ts';

export type AnswerPart = 'text' | 'refusal' | 'reasoning' | 'calls';

const PARTS: Partial<Record<Delta['kind'], AnswerPart>> = {
  text: 'text',
  refusal: 'refusal',
  reasoning: 'reasoning',
  tool_start: 'calls',
  tool_arguments: 'calls',
  provider_tool_start: 'calls',
  provider_tool_end: 'calls',
};

/** What of an answer `delta` adds to; `undefined` for one that only says something about it. */
export const partOf = ({ kind }: Delta): AnswerPart | undefined => PARTS[kind];
