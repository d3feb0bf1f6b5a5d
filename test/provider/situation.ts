import { type CompletionRequest, textOf } from './request.ts';
import type { PrefillDialect, Script } from './script.ts';

/** What a request asks of the model: a new answer, or the rest of one. */
export type Situation =
  | { readonly kind: 'original' }
  | { readonly kind: 'prefill' | 'nudge'; readonly prefix: string };

/**
 * A prefill ends with an assistant message. A nudge ends with a user message after an assistant message that says
 * what the script begins with. Everything else is an original request, or its replay.
 */
export function situationOf(request: CompletionRequest, script: Script): Situation {
  const last = request.messages.at(-1);
  if (last?.role === 'assistant') return { kind: 'prefill', prefix: textOf(last) };
  const before = request.messages.at(-2);
  const prefix = before?.role === 'assistant' && last?.role === 'user' ? textOf(before) : '';
  return prefix !== '' && scriptText(script).startsWith(prefix)
    ? { kind: 'nudge', prefix }
    : { kind: 'original' };
}

export const scriptText = (script: Script): string =>
  script.parts.map((part) => ('text' in part ? part.text : '')).join('');

/** Whether the trailing assistant message carries what this dialect needs to go on from it. */
export function isPrefill(request: CompletionRequest, dialect: PrefillDialect, path: string): boolean {
  const last = request.messages.at(-1);
  switch (dialect) {
    case 'any':
      return true;
    case 'vllm':
      return request.continue_final_message === true && request.add_generation_prompt === false;
    case 'deepseek':
      return last?.prefix === true && path.startsWith('/beta/');
    case 'mistral':
      return last?.prefix === true;
  }
}
