import { type Delta, isUsage, type Usage } from '../../../plans/delta.ts';
import type { ToolSchemas } from '../../../plans/tool-call.ts';
import { BaseAnswerWriter } from '../common/base-answer-writer.ts';
import type {
  AnswerWriter,
  AnswerWriterOptions,
  Ending,
  ForwardedCalls,
  ShownAnswer,
} from '../common/wire.ts';
import { ChoiceCalls } from './chat-tool-calls.ts';
import {
  type ChunkEnvelope,
  type ChunkForm,
  choicesWith,
  fits,
  rebuilds,
  usageChunk,
} from './chunk-envelope.ts';
import type { ChatChunk, ChunkEvent } from './chunk-reader.ts';

/** Writes one answer as chunks. */
export class ChunkAnswerWriter extends BaseAnswerWriter implements AnswerWriter<ChunkEvent> {
  readonly #schemas: ToolSchemas;
  readonly #form: ChunkForm;
  /** Only for forwarded answers. */
  #choiceCalls: ChoiceCalls | undefined;
  #envelope: ChunkEnvelope | undefined;
  /** Chunks of the current attempt that arrived before any content. */
  #early: ChunkEvent[] = [];
  /** The last chunk recognised as part of this answer with nothing but text; events that match a template share it. */
  #plain: ChatChunk | undefined;

  constructor(options: AnswerWriterOptions, form: ChunkForm) {
    super(options, options.facts.legacyFunctions);
    this.#schemas = options.facts.schemas;
    this.#form = form;
  }

  get begun(): boolean {
    return this.#envelope !== undefined;
  }

  get id(): string | undefined {
    const id = this.#envelope?.first.id;
    return typeof id === 'string' ? id : undefined;
  }

  get forwardedCalls(): ForwardedCalls | undefined {
    return this.#choiceCalls;
  }

  get forwarded_bytes(): number {
    return this.#choiceCalls?.held_bytes ?? 0;
  }

  restore({ first, content = first, calls }: ShownAnswer): void {
    if (first !== undefined && content !== undefined)
      this.#envelope = this.#form.envelopeOf(
        JSON.parse(first) as ChatChunk,
        JSON.parse(content) as ChatChunk,
      );
    if (calls.length > 0) this.calls.restore(calls);
  }

  show(deltas: readonly Delta[], event: ChunkEvent, intact: boolean): void {
    const { chunk, payload, role } = event;
    // The fast path for nearly every event.
    if (chunk === this.#plain && intact && deltas.length === 1) {
      this.sink.send(payload, deltas, false);
      return;
    }
    const envelope = this.#envelope;
    if (envelope && intact && !role && fits(envelope, chunk) && isProse(deltas)) {
      const isPlain =
        deltas.length === 1 && deltas[0]?.kind === 'text' && rebuilds(this.#form, envelope, chunk);
      if (isPlain) this.#plain = chunk;
      this.sink.send(payload, deltas, !isPlain);
      return;
    }
    if (deltas.length === 0) this.#showEmpty(event, intact);
    else if (isProse(deltas)) this.#showProse(deltas, event, intact);
    else for (const delta of deltas) this.#showOne(delta, event);
  }

  forward(event: ChunkEvent): void {
    this.#envelope ??= this.#form.envelopeOf(event.chunk);
    this.#choiceCalls ??= new ChoiceCalls(this.#schemas);
    const settled = this.#choiceCalls.read(event.chunk);
    const text = event.deltas.filter((delta) => delta.kind === 'text');
    this.send(event.payload, [...text, ...settled]);
  }

  restart(): void {
    this.#early = [];
  }

  finish({ reason, finish, after, usage, usageAsked }: Ending<ChunkEvent>): void {
    const role = finish ? this.#begin(finish) : false;
    const deltas: Delta[] = [{ kind: 'finish', reason }];
    if (!finish) this.send(this.#form.finishChunk(this.#require(), reason, role), deltas);
    else if (role || finish.deltas.some(isContent)) this.#sendRebuilt(finish, deltas, role, usage);
    else this.#sendTail(finish, deltas, usage);
    for (const event of after) this.#sendTail(unfinished(event), [], usage);
    const reported = [finish, ...after].some((event) => event?.deltas.some(isUsage));
    this.finishRest(usageAsked && !reported ? usage : undefined);
  }

  finishRest(usage: Usage | undefined): void {
    if (usage) this.send(usageChunk(this.#require(), usage), [{ kind: 'usage', usage }]);
    this.send('[DONE]');
  }

  fail(error: object): void {
    this.send(JSON.stringify({ error }), this.#choiceCalls?.unrecorded());
  }

  protected override sendEmpty(holdfast?: object): void {
    this.send(this.#form.emptyChunk(this.#require(), holdfast));
  }

  #showEmpty(event: ChunkEvent, intact: boolean): void {
    // Pings in the form of events are meant for the proxy; client SDKs may fail on them.
    if (!intact || event.ping) return;
    if (!this.#envelope) this.#early.push(event);
    else this.send(this.#form.payloadOf(this.#envelope, event, false));
  }

  #showProse(deltas: readonly Delta[], event: ChunkEvent, intact: boolean): void {
    const role = this.#begin(event);
    const envelope = this.#require();
    const payload = intact
      ? this.#form.payloadOf(envelope, event, role)
      : this.#form.textChunk(envelope, deltas, role);
    this.send(payload, deltas);
  }

  #showOne(delta: Delta, event: ChunkEvent): void {
    switch (delta.kind) {
      case 'text':
      case 'refusal':
      case 'reasoning':
        this.#showProse([delta], event, false);
        return;
      case 'tool_start':
      case 'tool_arguments':
      case 'tool_close': {
        const shown = this.calls.show(delta);
        if (shown) {
          const role = this.#begin(event);
          this.send(this.#form.toolChunk(this.#require(), shown, role), shown.deltas);
        } else if (this.calls.live) {
          this.sink.keep(this.calls.positioned(delta));
        }
      }
    }
  }

  /** Fixes the answer's identity with its first content. Returns true if that content must include the role. */
  #begin(event: ChunkEvent): boolean {
    if (this.#envelope) return false;
    // Some providers send a first chunk about the prompt, without identity.
    const first = this.#early.find(({ chunk }) => chunk.id && chunk.model) ?? event;
    const envelope = this.#form.envelopeOf(first.chunk, event.chunk);
    this.#envelope = envelope;
    const opening = this.#early.find(({ role }) => role);
    if (opening) this.send(this.#form.payloadOf(envelope, opening, true));
    for (const early of this.#early) {
      if (early !== opening && opening) this.send(this.#form.payloadOf(envelope, early, false));
    }
    this.#early = [];
    const advisories = this.drainAdvisories();
    // Not before the role.
    if (opening) for (const advisory of advisories) this.advise(advisory);
    return !opening;
  }

  #require(): ChunkEnvelope {
    if (!this.#envelope) throw new Error('nothing was delivered yet');
    return this.#envelope;
  }

  /** Sends `deltas` and the usage report of the event, if any. */
  #sendTail(event: ChunkEvent, deltas: readonly Delta[], usage: Usage | undefined): void {
    const reports = event.deltas.filter(isUsage);
    if (usage && reports.length > 0) this.#sendRebuilt(event, deltas, false, usage);
    else this.send(this.#form.payloadOf(this.#require(), event, false), [...deltas, ...reports]);
  }

  /** Sends the event without content, and with `usage` in place of its own report. */
  #sendRebuilt(
    { chunk, deltas: said }: ChunkEvent,
    deltas: readonly Delta[],
    role: boolean,
    usage: Usage | undefined,
  ): void {
    const reports = said.filter(isUsage);
    const total = reports.length > 0 ? usage : undefined;
    const payload = this.#form.finishOf(this.#require(), chunk, role, total);
    this.send(payload, [...deltas, ...(total ? [{ kind: 'usage', usage: total } as const] : reports)]);
  }
}

function isProse(deltas: readonly Delta[]): boolean {
  for (const { kind } of deltas) {
    if (kind !== 'text' && kind !== 'reasoning' && kind !== 'refusal' && kind !== 'usage') return false;
  }
  return deltas.length > 0;
}

/** Some providers repeat the finish reason next to their report, but an answer must have only one. */
function unfinished(event: ChunkEvent): ChunkEvent {
  if (!event.deltas.some(({ kind }) => kind === 'finish')) return event;
  const chunk = { ...event.chunk, choices: choicesWith(event.chunk, { finish_reason: null }) };
  return { ...event, chunk, payload: JSON.stringify(chunk) };
}

const isContent = ({ kind }: Delta): boolean => kind !== 'finish' && kind !== 'usage';
