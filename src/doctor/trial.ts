import type { EventSourceMessage } from 'eventsource-parser';
import { classify } from '../interrupts/classify.ts';
import type { Interruption } from '../interrupts/interruption.ts';
import { systemTime } from '../lib/time.ts';
import type { Delta, Usage } from '../plans/delta.ts';
import { upstreamUrl } from '../proxy/upstream/address.ts';
import { Attempt } from '../proxy/upstream/attempt.ts';
import type { Target } from '../proxy/upstream/target.ts';
import { ChatCompletionsReader } from '../proxy/wires/chunks/chat-completions.ts';
import { chatWire } from '../proxy/wires/chunks/chat-wire.ts';
import type { Samples } from '../proxy/wires/common/fingerprint.ts';
import { clocksFor, type DoctorContext, headersFor } from './doctor-context.ts';

/** After the finish reason only a usage report and `[DONE]` are expected. */
const FINISH_WAIT_MS = 2000;

/** One streamed request and when its events came. */
export class Trial {
  readonly deltas: Delta[] = [];
  usage: Usage | undefined;
  /** Events with something of the answer in them. */
  events = 0;
  /** Pieces in which they came. */
  batches = 0;
  first_ms = 0;
  last_ms = 0;
  readonly #attempt: Attempt;
  readonly #reader = new ChatCompletionsReader(() => 0);
  readonly #began_ms = performance.now();
  #isFinished = false;

  private constructor(attempt: Attempt) {
    this.#attempt = attempt;
  }

  /** `base_url`: where it goes, if not to the upstream's own. */
  static async run(
    context: DoctorContext,
    target: Target,
    body: object,
    base_url: string = target.upstream.base_url,
  ): Promise<Trial> {
    const request = {
      url: upstreamUrl(base_url, chatWire.path),
      headers: headersFor(context, target),
      body: JSON.stringify(body),
    };
    const { event_bytes } = context.configuration.limits;
    const limits = { clocks: clocksFor(context, target), event_bytes };
    const nobody = new AbortController().signal;
    const trial = new Trial(new Attempt(context.transport, request, limits, systemTime, nobody));
    await trial.#run();
    return trial;
  }

  /** Why there is no whole answer, if there is none. */
  get interruption(): Interruption | undefined {
    if (this.#isFinished) return undefined;
    const phase = this.events > 0 ? 'text' : 'connect';
    return classify(this.#attempt.end, phase, systemTime.wall());
  }

  get traces(): Samples {
    return { events: this.#reader.samples, headers: this.#attempt.headers };
  }

  get text(): string {
    return this.deltas.map((delta) => (delta.kind === 'text' ? delta.text : '')).join('');
  }

  async #run(): Promise<void> {
    if (await this.#attempt.open()) {
      await this.#attempt.read((events) => {
        const before = this.events;
        for (const event of events) if (!this.#attempt.isOver) this.#take(event);
        if (this.events > before) this.batches++;
        return undefined;
      });
    }
  }

  #take(message: EventSourceMessage): void {
    const event = this.#reader.read(message);
    if (event.kind === 'done') {
      this.#attempt.done();
    } else if (event.kind === 'error_event' || event.kind === 'bad_finish') {
      if (!this.#isFinished) this.#attempt.stop(event);
    } else if (event.kind === 'malformed') {
      if (!this.#isFinished) this.#attempt.stop({ kind: 'malformed_event' });
    } else if (event.kind === 'answer') for (const delta of event.deltas) this.#note(delta);
  }

  #note(delta: Delta): void {
    if (delta.kind === 'usage') this.usage = delta.usage;
    else if (delta.kind === 'finish') {
      this.#isFinished = true;
      this.#attempt.finishWithin(FINISH_WAIT_MS);
    } else {
      this.#attempt.progressed(delta.kind === 'reasoning');
      this.deltas.push(delta);
      this.last_ms = performance.now() - this.#began_ms;
      if (this.events++ === 0) this.first_ms = this.last_ms;
    }
  }
}
