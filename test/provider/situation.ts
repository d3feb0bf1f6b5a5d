import { type CompletionRequest, textOf } from './request.ts';
import type { PrefillDialect, Script } from './script.ts';

/** What a request asks of the model: a new answer, or the rest of one. */
export type Situation =
  | { readonly kind: 'original' }
  | { readonly kind: 'prefill'; readonly prefix: string; readonly reasoning?: string }
  /** `anchor`: the words that the nudge quotes. */
  | { readonly kind: 'nudge'; readonly prefix: string; readonly anchor: string };

/**
 * A prefill ends with an assistant message. A nudge ends with a user message after an assistant message that starts the
 * script's text. Anything else is an original request, or its replay.
 */
export function situationOf(request: CompletionRequest, script: Script): Situation {
  const last = request.messages.at(-1);
  if (last?.role === 'assistant') {
    const { reasoning_content: reasoning } = last;
    return { kind: 'prefill', prefix: textOf(last), ...(typeof reasoning === 'string' && { reasoning }) };
  }
  const before = request.messages.at(-2);
  const prefix = before?.role === 'assistant' && last?.role === 'user' ? textOf(before) : '';
  return prefix !== '' && scriptText(script).startsWith(prefix)
    ? { kind: 'nudge', prefix, anchor: quotedIn(textOf(last)) }
    : { kind: 'original' };
}

/** The first JSON string in a text; empty if there is none. */
function quotedIn(text: string): string {
  const quoted = /"(?:[^"\\]|\\.)*"/.exec(text)?.[0];
  return quoted === undefined ? '' : JSON.parse(quoted);
}

export const scriptReasoning = (script: Script): string =>
  script.parts.map((part) => ('reasoning' in part ? part.reasoning : '')).join('');

export const scriptText = (script: Script): string =>
  script.parts.map((part) => ('text' in part ? part.text : '')).join('');

/** Whether the trailing assistant message has what this dialect needs to continue it. */
export function isPrefill(request: CompletionRequest, dialect: PrefillDialect, path: string): boolean {
  if (typeof dialect === 'function') return dialect(request, path);
  const last = request.messages.at(-1);
  switch (dialect) {
    case 'openai':
    case 'azure':
    case 'xai':
      return false;
    case 'vllm':
    case 'llamacpp':
      return request.continue_final_message === true && request.add_generation_prompt === false;
    case 'sglang':
      return request.continue_final_message === true;
    case 'deepseek':
      return last?.prefix === true && path.startsWith('/beta/');
    case 'mistral':
    case 'litellm':
      return last?.prefix === true;
    case 'kimi':
      return last?.partial === true;
    case 'qwen':
      return last?.partial === true && request.enable_thinking === false;
    default:
      return true;
  }
}
