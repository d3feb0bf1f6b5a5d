import type { Answer, Step } from '../answer.ts';
import type { Envelope, Telling } from './telling.ts';

const CREATED = 1_700_000_000;
const USAGE = { prompt_tokens: 20, completion_tokens: 40, total_tokens: 60 };

const callId = (envelope: Envelope, call: number): string => `call_${envelope.id}_${call}`;
const finishOf = ({ has_calls }: Envelope): string => (has_calls ? 'tool_calls' : 'stop');

export class ChatTelling implements Telling {
  readonly #envelope: Envelope;

  constructor(envelope: Envelope) {
    this.#envelope = envelope;
  }

  begin(): string {
    return this.#chunk({ role: 'assistant', content: '' });
  }

  step(step: Step): string {
    switch (step.kind) {
      case 'text':
        return this.#chunk({ content: step.text });
      case 'call': {
        const call = { name: step.name, arguments: '' };
        const id = callId(this.#envelope, step.call);
        return this.#chunk({ tool_calls: [{ index: step.call, id, type: 'function', function: call }] });
      }
      case 'arguments':
        return this.#chunk({ tool_calls: [{ index: step.call, function: { arguments: step.text } }] });
      case 'call_end':
        return '';
    }
  }

  end(): string {
    const usage = this.#envelope.usage ? this.#event({ choices: [], usage: USAGE }) : '';
    return `${this.#chunk({}, finishOf(this.#envelope))}${usage}data: [DONE]\n\n`;
  }

  #chunk(delta: object, finish_reason: string | null = null): string {
    return this.#event({ choices: [{ index: 0, delta, logprobs: null, finish_reason }] });
  }

  #event(fields: object): string {
    const { id, model } = this.#envelope;
    const chunk = {
      id: `chatcmpl-${id}`,
      object: 'chat.completion.chunk',
      created: CREATED,
      model,
      ...fields,
    };
    return `data: ${JSON.stringify(chunk)}\n\n`;
  }
}

export function chatDocument(envelope: Envelope, { text, calls }: Answer): object {
  const tool_calls = calls.map((call, at) => ({
    id: callId(envelope, at),
    type: 'function',
    function: call,
  }));
  const message = {
    role: 'assistant',
    content: text,
    refusal: null,
    ...(calls.length > 0 && { tool_calls }),
  };
  return {
    id: `chatcmpl-${envelope.id}`,
    object: 'chat.completion',
    created: CREATED,
    model: envelope.model,
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishOf(envelope) }],
    usage: USAGE,
  };
}
