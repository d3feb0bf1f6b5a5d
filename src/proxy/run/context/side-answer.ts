import type { EventSourceMessage } from 'eventsource-parser';
import { classify } from '../../../interrupts/classify.ts';
import type { Interruption } from '../../../interrupts/interruption.ts';
import type { Time } from '../../../lib/time.ts';
import type { Usage } from '../../../plans/delta.ts';
import { tokensOfDeltas } from '../../../plans/tokens.ts';
import type { Attempt } from '../../upstream/attempt.ts';
import { ChatCompletionsReader } from '../../wires/chunks/chat-completions.ts';

/** After the finish reason only a usage report and `[DONE]` are expected. */
const FINISH_WAIT_MS = 2000;
/** What is longer than its tokens could be is no answer to what was asked. */
const CHARACTERS_PER_TOKEN_MAX = 16;
/** An answer that was cut at its limit says what comes first in it. */
const USABLE_FINISHES: ReadonlySet<string> = new Set(['stop', 'length']);

/** A short answer that a run asks for besides its client's, on chat completions: a summary, a probe. */
export class SideAnswer {
  readonly #attempt: Attempt;
  readonly #characters_max: number;
  readonly #limit: string;
  readonly #time: Time;
  readonly #reader = new ChatCompletionsReader(() => 0);
  #text = '';
  #deltas = 0;
  #usage: Usage | undefined;
  #finish: string | undefined;

  /** `limit`: the key of the configuration that the limit comes from. */
  constructor(attempt: Attempt, tokens_max: number, limit: string, time: Time) {
    this.#attempt = attempt;
    this.#limit = limit;
    this.#time = time;
    this.#characters_max = tokens_max * CHARACTERS_PER_TOKEN_MAX;
  }

  /** Why there is no answer, if there is none. */
  get interruption(): Interruption | undefined {
    if (this.#finish !== undefined) return undefined;
    return classify(this.#attempt.end, this.#text ? 'text' : 'connect', this.#time.wall());
  }

  /** Empty if there is none. */
  get text(): string {
    return USABLE_FINISHES.has(this.#finish ?? '') ? this.#text.trim() : '';
  }

  /** What was generated for it, as reported or as estimated, and the prompt as far as it was reported. */
  get usage(): Pick<Usage, 'prompt_tokens' | 'completion_tokens'> {
    return (
      this.#usage ?? { prompt_tokens: 0, completion_tokens: tokensOfDeltas(this.#deltas, this.#text.length) }
    );
  }

  async run(): Promise<void> {
    if (await this.#attempt.open()) {
      await this.#attempt.read((events) => {
        for (const event of events) if (!this.#attempt.isOver) this.#take(event);
        return undefined;
      });
    }
  }

  #take(message: EventSourceMessage): void {
    const event = this.#reader.read(message);
    switch (event.kind) {
      case 'done':
        this.#attempt.done();
        return;
      case 'error_event':
      case 'bad_finish':
        if (this.#finish === undefined) this.#attempt.stop(event);
        return;
      case 'malformed':
        if (this.#finish === undefined) this.#attempt.stop({ kind: 'malformed_event' });
        return;
      case 'nothing':
        return;
      case 'answer':
        for (const delta of event.deltas) {
          if (delta.kind === 'usage') this.#usage = delta.usage;
          else if (delta.kind === 'finish') this.#finishWith(delta.reason);
          else if (delta.kind === 'text') this.#say(delta.text);
          else this.#attempt.progressed(delta.kind === 'reasoning');
        }
    }
  }

  #say(text: string): void {
    this.#attempt.progressed(false);
    this.#deltas++;
    this.#text += text;
    if (this.#text.length > this.#characters_max) this.#attempt.stop({ kind: 'limit', limit: this.#limit });
  }

  #finishWith(reason: string): void {
    this.#finish ??= reason;
    this.#attempt.finishWithin(FINISH_WAIT_MS);
  }
}
