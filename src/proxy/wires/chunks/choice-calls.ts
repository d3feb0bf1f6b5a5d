import { isObject } from '../../../lib/json.ts';
import type { Delta } from '../../../plans/delta.ts';
import type { SettledCall, ToolCall } from '../../../plans/tool-call.ts';
import { closedByFinish, normalisedArguments, proofOf, type ToolSchemas } from '../../../plans/tool-proof.ts';
import { Transcript } from '../../../plans/transcript.ts';
import { ChatToolCalls } from './chat-tool-calls.ts';
import type { ChatChoice, ChatChunk, ChatToolCall } from './chunk-reader.ts';

interface Choice {
  readonly calls: ChatToolCalls;
  readonly transcript: Transcript;
}

type ChoiceCall = Extract<Delta, { readonly kind: 'choice_call' }>;

/** The tool calls of an answer with several choices, which is sent as it comes: each choice numbers its own. */
export class ChoiceCalls {
  readonly #schemas: ToolSchemas;
  readonly #choices = new Map<unknown, Choice>();
  /** Calls that the journal has. */
  readonly #recorded = new Set<ToolCall>();
  #count = 0;

  constructor(schemas: ToolSchemas) {
    this.#schemas = schemas;
  }

  /** The calls that are settled now and were not before, for the journal. */
  read({ choices }: ChatChunk): readonly ChoiceCall[] {
    if (!Array.isArray(choices)) return [];
    const isStep = (choices as readonly ChatChoice[]).map(
      (choice) => isObject(choice) && this.#takeChoice(choice),
    );
    return isStep.includes(true) ? this.unrecorded() : [];
  }

  /** The same at the end of the answer. */
  unrecorded(): readonly ChoiceCall[] {
    const fresh: ChoiceCall[] = [];
    for (const [choice, { transcript }] of this.#choices) {
      for (const call of transcript.toolCalls) {
        if (this.#recorded.has(call) || !this.#isSettled(call)) continue;
        this.#recorded.add(call);
        fresh.push({ kind: 'choice_call', choice: typeof choice === 'number' ? choice : 0, ...whole(call) });
      }
    }
    return fresh;
  }

  /** Those that are proven to be whole, choice by choice. */
  get settled(): readonly SettledCall[] {
    return this.#all.filter((call) => this.#isSettled(call)).map(whole);
  }

  /** The others. */
  get unfinished(): readonly ToolCall[] {
    return this.#all.filter((call) => !this.#isSettled(call));
  }

  get #all(): readonly ToolCall[] {
    return [...this.#choices.values()].flatMap(({ transcript }) => transcript.toolCalls);
  }

  #isSettled(call: ToolCall): boolean {
    return call.state === 'closed' || proofOf(call, this.#schemas) !== undefined;
  }

  /** True if a call may be settled by it: another began, text came, or the choice is finished. Fragments say nothing yet. */
  #takeChoice({ index = 0, delta, finish_reason }: ChatChoice): boolean {
    const fragments = delta?.tool_calls;
    if (!Array.isArray(fragments) && !this.#choices.has(index)) return false;
    const { calls, transcript } = this.#choice(index);
    const before = transcript.toolCalls.length;
    const isText = typeof delta?.content === 'string' && delta.content !== '';
    // What the text says is nothing to the calls: that there is any is.
    if (isText) transcript.fold({ kind: 'text', text: '' });
    for (const fragment of (fragments ?? []) as readonly ChatToolCall[]) {
      for (const told of calls.read(fragment) ?? []) transcript.fold(told);
    }
    const isFinished = typeof finish_reason === 'string';
    if (isFinished) for (const close of closedByFinish(transcript).closed) transcript.fold(close);
    return isText || isFinished || (before > 0 && transcript.toolCalls.length > before);
  }

  #choice(index: unknown): Choice {
    const known = this.#choices.get(index);
    if (known) return known;
    const choice = { calls: new ChatToolCalls(() => this.#count++), transcript: new Transcript() };
    this.#choices.set(index, choice);
    return choice;
  }
}

const whole = ({ id, name, arguments: text }: ToolCall): SettledCall => ({
  id,
  name,
  arguments: normalisedArguments(text),
});
