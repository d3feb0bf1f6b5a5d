import type { Answer, Step } from '../answer.ts';
import type { Envelope, Telling } from './telling.ts';

const event = (payload: { readonly type: string; readonly [field: string]: unknown }): string =>
  `event: ${payload.type}\ndata: ${JSON.stringify(payload)}\n\n`;

const callId = (envelope: Envelope, call: number): string => `toolu_${envelope.id}_${call}`;
const stopReasonOf = ({ has_calls }: Envelope): string => (has_calls ? 'tool_use' : 'end_turn');

export class MessagesTelling implements Telling {
  readonly #envelope: Envelope;
  #blocks = 0;
  #isTextOpen = false;

  constructor(envelope: Envelope) {
    this.#envelope = envelope;
  }

  begin(): string {
    const usage = { input_tokens: 20, output_tokens: 1 };
    const message = {
      ...messageOf(this.#envelope),
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage,
    };
    return event({ type: 'message_start', message });
  }

  step(step: Step): string {
    switch (step.kind) {
      case 'text': {
        const begun = this.#isTextOpen ? '' : this.#begin({ type: 'text', text: '' });
        this.#isTextOpen = true;
        return begun + this.#delta({ type: 'text_delta', text: step.text });
      }
      case 'call': {
        const id = callId(this.#envelope, step.call);
        return this.#endText() + this.#begin({ type: 'tool_use', id, name: step.name, input: {} });
      }
      case 'arguments':
        return this.#delta({ type: 'input_json_delta', partial_json: step.text });
      case 'call_end':
        return this.#endBlock();
    }
  }

  end(): string {
    const delta = { stop_reason: stopReasonOf(this.#envelope), stop_sequence: null };
    const closed = this.#endText() + event({ type: 'message_delta', delta, usage: { output_tokens: 40 } });
    return closed + event({ type: 'message_stop' });
  }

  #begin(content_block: object): string {
    return event({ type: 'content_block_start', index: this.#blocks, content_block });
  }

  #delta(delta: object): string {
    return event({ type: 'content_block_delta', index: this.#blocks, delta });
  }

  #endText(): string {
    if (!this.#isTextOpen) return '';
    this.#isTextOpen = false;
    return this.#endBlock();
  }

  #endBlock(): string {
    return event({ type: 'content_block_stop', index: this.#blocks++ });
  }
}

const messageOf = ({ id, model }: Envelope) => ({
  id: `msg_${id}`,
  type: 'message',
  role: 'assistant',
  model,
});

export function messagesDocument(envelope: Envelope, { text, calls }: Answer): object {
  const blocks = calls.map(({ name, arguments: json }, at) => ({
    type: 'tool_use',
    id: callId(envelope, at),
    name,
    input: JSON.parse(json) as unknown,
  }));
  return {
    ...messageOf(envelope),
    content: [...(text === '' ? [] : [{ type: 'text', text }]), ...blocks],
    stop_reason: stopReasonOf(envelope),
    stop_sequence: null,
    usage: { input_tokens: 20, output_tokens: 40 },
  };
}
