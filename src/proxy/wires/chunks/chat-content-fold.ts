import { isObject } from '../../../lib/json.ts';
import { goOn, type OpenFields } from '../common/document.ts';

/** Puts the content of a message together: a text, or a list of parts where deltas bring parts (Mistral). */
export class ContentFold {
  #text = '';
  #parts: OpenFields[] | undefined;

  /** `content` of a delta. */
  add(content: unknown): void {
    if (Array.isArray(content)) {
      for (const part of content) if (isObject(part)) this.#takePart(part);
    } else if (typeof content === 'string' && content !== '') {
      if (this.#parts) this.#takePart({ type: 'text', text: content });
      else this.#text += content;
    }
  }

  get content(): string | readonly object[] {
    return this.#parts ?? this.#text;
  }

  #takePart({ type, ...said }: Readonly<Record<string, unknown>>): void {
    this.#parts ??= this.#text === '' ? [] : [{ type: 'text', text: this.#text }];
    const last = this.#parts.at(-1);
    const known = last?.type === type ? last : undefined;
    const part = known ?? { type };
    if (!known) this.#parts.push(part);
    if (type === 'thinking' && Array.isArray(said.thinking)) goOnThinking(part, said.thinking);
    else goOn(part, said);
  }
}

/** A thought is a list of texts, of which pieces come one by one. */
function goOnThinking(known: OpenFields, thinking: readonly unknown[]): void {
  const thoughts = Array.isArray(known.thinking) ? (known.thinking as unknown[]) : [];
  known.thinking = thoughts;
  for (const thought of thinking) {
    const last = thoughts.at(-1);
    if (isObject(last) && isObject(thought) && last.type === 'text' && thought.type === 'text')
      goOn(last, { text: thought.text });
    else thoughts.push(isObject(thought) ? { ...thought } : thought);
  }
}
