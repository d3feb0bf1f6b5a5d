import type { WireName } from '../../../src/checkpoint/journal.ts';
import type { DialectName } from '../../../src/config/dialect-names.ts';
import type { PrefillManner } from '../../../src/plans/seam/mode.ts';
import { mannerOf } from '../../../src/proxy/wires/common/dialect.ts';
import { DIALECTS } from '../../../src/proxy/wires/dialects/registry.ts';
import { type Manner, OBEDIENT, PREFILLED } from '../../plans/seam/manners.ts';
import type { Plan } from '../../provider/script.ts';
import { mannersOf } from '../../proxy/wires/dialects/fixture-plan.ts';
import { FIXTURES } from '../../proxy/wires/dialects/fixture-registry.ts';
import { aiSdkCompatible } from '../clients/ai-sdk.ts';
import { aiSdkAnthropic } from '../clients/ai-sdk-anthropic.ts';
import { aiSdk5Responses, aiSdk6Responses, aiSdkResponses } from '../clients/ai-sdk-responses.ts';
import { anthropicEvents, anthropicHelper } from '../clients/anthropic.ts';
import type { ChatClient } from '../clients/chat-client.ts';
import { langchain } from '../clients/langchain.ts';
import { langchainAnthropic } from '../clients/langchain-anthropic.ts';
import { langchainResponses } from '../clients/langchain-responses.ts';
import { openaiChunks, openaiCompletions, openaiHelper } from '../clients/openai.ts';
import { openaiResponses, openaiResponsesHelper } from '../clients/openai-responses.ts';

/** How a model answers a request for the rest, by the kind of request. */
export type Says = Readonly<Record<'prefill' | 'nudge', Manner>>;

/** Where an answer comes from: the wire, the provider, and the SDKs that use the wire. */
export interface Setting {
  readonly name: string;
  readonly wire: WireName;
  readonly upstream: DialectName;
  /** The suffix of the model's name. */
  readonly model: string;
  readonly plan: Omit<Plan, 'parts'>;
  /** Parameters of the client's request. */
  readonly parameters?: Readonly<Record<string, unknown>>;
  readonly clients: readonly ((url: string) => ChatClient)[];
  /** How the first request for the rest is made; `undefined` for a replay. */
  asks(delivered: string, says: Says): keyof Says | undefined;
  /** The model behaviours with which the seam promises the uncut text. */
  readonly promised: readonly Says[];
  /** Holdfast has seen the model continue another answer. */
  readonly isTaught?: true;
}

const nudges: readonly Manner[] = Object.values(OBEDIENT);
const nudged: readonly Says[] = nudges.map((nudge) => ({ prefill: PREFILLED['answers anew'], nudge }));
const prefilled = (prefill: Manner): Says => ({
  prefill,
  nudge: OBEDIENT['repeats the anchor'],
});

/** What is known about a target limits how it may behave. */
function promisedBy(manner: PrefillManner | undefined): readonly Says[] {
  switch (manner) {
    case 'exact':
      return [prefilled(PREFILLED['continues it'])];
    case 'echo':
      return [
        prefilled(PREFILLED['repeats it first']),
        prefilled(PREFILLED['repeats it first, behind a space']),
      ];
    case 'new_turn':
      return nudged;
    default:
      return Object.values(PREFILLED).flatMap((prefill) => nudges.map((nudge) => ({ prefill, nudge })));
  }
}

const byPrefill = () => 'prefill' as const;
const byNudge = () => 'nudge' as const;
/** Shorter prefixes reveal nothing. */
const byTrial = (delivered: string) => (delivered.trimEnd().length >= 16 ? 'prefill' : 'nudge');

function asksBy(manner: PrefillManner | undefined): Setting['asks'] {
  if (manner === undefined) return byTrial;
  return manner === 'new_turn' ? byNudge : byPrefill;
}

const CHAT_CLIENTS = [openaiChunks, openaiHelper, aiSdkCompatible, langchain];
const MESSAGES_CLIENTS = [anthropicEvents, anthropicHelper, aiSdkAnthropic, langchainAnthropic];
const RESPONSES_CLIENTS = [
  openaiResponses,
  openaiResponsesHelper,
  aiSdkResponses,
  aiSdk5Responses,
  aiSdk6Responses,
  langchainResponses,
];

const CHATS = Object.values(FIXTURES).map((fixture): Setting => {
  const { dialect, model, request: parameters = {} } = fixture;
  const { prefilled: _, ...plan } = mannersOf(fixture);
  const manner = mannerOf(DIALECTS[dialect], model);
  return {
    name: `chat completions, ${dialect}`,
    wire: 'chat_completions',
    upstream: dialect,
    model,
    // If it is unknown whether the dialect's models continue a prefix, this one may.
    plan: { ...plan, ...(manner === undefined && !fixture.prefill && { prefill: 'any' }) },
    parameters,
    clients: CHAT_CLIENTS,
    asks: asksBy(manner),
    promised: promisedBy(manner),
  };
});

const PLAIN = { upstream: 'generic', plan: {} } as const;

/** Settings in which the model is asked by nudge. */
export const NUDGED: readonly Setting[] = [
  {
    ...PLAIN,
    name: 'chat completions, openai',
    wire: 'chat_completions',
    upstream: 'openai',
    plan: { prefill: 'openai' },
    model: 'gpt-5-2025-08-07',
    clients: CHAT_CLIENTS,
    asks: byNudge,
    promised: nudged,
  },
  {
    ...PLAIN,
    name: 'messages, where prefills are refused',
    wire: 'messages',
    plan: { continuation: 'rejects_prefill' },
    model: 'claude-opus-4-6',
    clients: MESSAGES_CLIENTS,
    asks: byNudge,
    promised: nudged,
  },
  {
    ...PLAIN,
    name: 'responses',
    wire: 'responses',
    plan: { prefill: 'openai' },
    model: 'gpt-5',
    clients: RESPONSES_CLIENTS,
    asks: byNudge,
    promised: nudged,
  },
];

/** A setting in which a prefill is tried before a nudge. */
export const TRIED: Setting = {
  ...PLAIN,
  name: 'chat completions, generic',
  wire: 'chat_completions',
  model: 'some-model',
  clients: CHAT_CLIENTS,
  asks: byTrial,
  promised: promisedBy(undefined),
};

export const SETTINGS: readonly Setting[] = [
  ...CHATS,
  ...NUDGED.filter(({ wire }) => wire !== 'chat_completions'),
  {
    ...TRIED,
    name: 'chat completions, a target whose manner was seen before',
    // Depends on whether the model was seen to continue a prefix.
    asks: (_, { prefill }) => (prefill === PREFILLED['continues it'] ? 'prefill' : 'nudge'),
    isTaught: true,
  },
  {
    ...PLAIN,
    name: 'chat completions, in a grammar, which only a replay keeps to',
    wire: 'chat_completions',
    model: 'some-model',
    parameters: { guided_regex: '(?s).*' },
    clients: [openaiChunks, openaiHelper],
    asks: () => undefined,
    promised: [prefilled(PREFILLED['answers anew'])],
  },
  {
    ...PLAIN,
    name: 'completions',
    wire: 'completions',
    model: 'some-model',
    clients: [openaiCompletions],
    asks: byPrefill,
    promised: promisedBy('exact'),
  },
  {
    ...PLAIN,
    name: 'messages, where prefills are continued',
    wire: 'messages',
    model: 'claude-sonnet-4-5',
    clients: MESSAGES_CLIENTS,
    asks: byPrefill,
    promised: promisedBy('exact'),
  },
];
