import type { Answer, Step } from '../answer.ts';
import type { Envelope, Telling } from './telling.ts';

const CREATED = 1_700_000_000;
const USAGE = {
  input_tokens: 20,
  input_tokens_details: { cached_tokens: 0 },
  output_tokens: 40,
  output_tokens_details: { reasoning_tokens: 0 },
  total_tokens: 60,
};

export class ResponsesTelling implements Telling {
  readonly #envelope: Envelope;
  readonly #output: object[] = [];
  #sequence = 0;
  #text: string | undefined;
  #call: { readonly name: string; json: string } = { name: '', json: '' };

  constructor(envelope: Envelope) {
    this.#envelope = envelope;
  }

  begin(): string {
    const response = responseOf(this.#envelope, 'in_progress', []);
    return this.#event('response.created', { response }) + this.#event('response.in_progress', { response });
  }

  step(step: Step): string {
    switch (step.kind) {
      case 'text': {
        const begun = this.#text === undefined ? this.#beginText() : '';
        this.#text = (this.#text ?? '') + step.text;
        const fields = { ...this.#place(), delta: step.text, logprobs: [] };
        return begun + this.#event('response.output_text.delta', fields);
      }
      case 'call': {
        const closed = this.#endText();
        this.#call = { name: step.name, json: '' };
        const item = this.#callItem('in_progress');
        return closed + this.#event('response.output_item.added', { output_index: this.#index, item });
      }
      case 'arguments': {
        this.#call.json += step.text;
        const fields = { item_id: this.#callItem('').id, output_index: this.#index, delta: step.text };
        return this.#event('response.function_call_arguments.delta', fields);
      }
      case 'call_end': {
        const item = this.#callItem('completed');
        const fields = {
          item_id: item.id,
          output_index: this.#index,
          arguments: item.arguments,
          name: item.name,
        };
        return this.#event('response.function_call_arguments.done', fields) + this.#endItem(item);
      }
    }
  }

  end(): string {
    const closed = this.#endText();
    const response = responseOf(this.#envelope, 'completed', this.#output);
    return closed + this.#event('response.completed', { response });
  }

  get #index(): number {
    return this.#output.length;
  }

  #event(type: string, fields: object): string {
    const event = { type, sequence_number: this.#sequence++, ...fields };
    return `event: ${type}\ndata: ${JSON.stringify(event)}\n\n`;
  }

  #place(): object {
    return { item_id: messageId(this.#envelope), output_index: this.#index, content_index: 0 };
  }

  #callItem(status: string) {
    return callItem(this.#envelope, this.#index, status, this.#call.name, this.#call.json);
  }

  #beginText(): string {
    const item = messageItem(this.#envelope, 'in_progress', []);
    return (
      this.#event('response.output_item.added', { output_index: this.#index, item }) +
      this.#event('response.content_part.added', { ...this.#place(), part: partOf('') })
    );
  }

  #endText(): string {
    const text = this.#text;
    if (text === undefined) return '';
    this.#text = undefined;
    const part = partOf(text);
    return (
      this.#event('response.output_text.done', { ...this.#place(), text, logprobs: [] }) +
      this.#event('response.content_part.done', { ...this.#place(), part }) +
      this.#endItem(messageItem(this.#envelope, 'completed', [part]))
    );
  }

  #endItem(item: object): string {
    const done = this.#event('response.output_item.done', { output_index: this.#index, item });
    this.#output.push(item);
    return done;
  }
}

const partOf = (text: string) => ({ type: 'output_text', annotations: [], logprobs: [], text });
const messageId = ({ id }: Envelope): string => `msg_${id}`;

const messageItem = (envelope: Envelope, status: string, content: readonly object[]) => ({
  id: messageId(envelope),
  type: 'message',
  status,
  role: 'assistant',
  content,
});

const callItem = ({ id }: Envelope, index: number, status: string, name: string, json: string) => ({
  id: `fc_${id}_${index}`,
  type: 'function_call',
  status,
  call_id: `call_${id}_${index}`,
  name,
  arguments: json,
});

const responseOf = ({ id, model }: Envelope, status: string, output: readonly object[]) => ({
  id: `resp_${id}`,
  object: 'response',
  created_at: CREATED,
  status,
  background: false,
  error: null,
  incomplete_details: null,
  instructions: null,
  metadata: {},
  model,
  output,
  parallel_tool_calls: true,
  temperature: 1,
  tool_choice: 'auto',
  tools: [],
  top_p: 1,
  usage: status === 'completed' ? USAGE : null,
});

export function responsesDocument(envelope: Envelope, { text, calls }: Answer): object {
  const message = text === '' ? [] : [messageItem(envelope, 'completed', [partOf(text)])];
  const items = calls.map(({ name, arguments: json }, at) =>
    callItem(envelope, message.length + at, 'completed', name, json),
  );
  return responseOf(envelope, 'completed', [...message, ...items]);
}
