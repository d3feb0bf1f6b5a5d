import { isObject } from '../../../lib/json.ts';
import type { Fields } from '../../../lib/json-body.ts';
import { promptSize } from '../common/prompt-size.ts';
import {
  checkMessages,
  checkModel,
  checkTools,
  given,
  invalid,
  isStrings,
} from '../common/request-checks.ts';
import type { RequestFacts } from '../common/request-facts.ts';
import type { WireRequest } from '../common/wire.ts';

/** The parts of a message request that decide how a run may be continued. */
export interface MessagesRequest extends WireRequest {
  readonly messages: readonly MessageParam[];
  readonly max_tokens?: number | null;
  readonly stop_sequences?: readonly string[] | null;
  readonly system?: unknown;
  readonly tools?: readonly Readonly<Record<string, unknown>>[] | null;
  readonly tool_choice?: unknown;
  readonly thinking?: unknown;
  readonly output_config?: unknown;
  readonly output_format?: unknown;
}

export interface MessageParam {
  readonly role: string;
  /** A string, or content blocks. */
  readonly content?: unknown;
}

/** What a run relies on; everything else is left to the provider to judge. */
export function checkMessagesRequest(fields: Fields): MessagesRequest {
  const { stop_sequences } = fields;
  checkModel(fields);
  checkMessages(fields);
  checkTools(fields);
  if (given(stop_sequences) && !isStrings(stop_sequences))
    throw invalid('stop_sequences', 'a list of strings');
  return fields as unknown as MessagesRequest;
}

/** Fields are looked at with care: what is wrong with them is for the provider to say. */
export function messagesFactsOf(request: MessagesRequest): RequestFacts {
  const { messages, system, max_tokens, stop_sequences, tools, tool_choice } = request;
  const choice = isObject(tool_choice) ? tool_choice.type : undefined;
  const expectsJson = hasFormat(request);
  return {
    schemas: new Map(
      (tools ?? []).flatMap(({ name, input_schema }) =>
        typeof name === 'string' ? [[name, input_schema ?? {}]] : [],
      ),
    ),
    hasTools: (tools ?? []).length > 0,
    choices: 1,
    spliceable: true,
    onlyReplay: expectsJson || choice === 'any' || choice === 'tool',
    expectsJson,
    stops: stop_sequences ?? [],
    max_tokens: typeof max_tokens === 'number' ? max_tokens : Infinity,
    usageAsked: true,
    legacyFunctions: false,
    promptSize: () => promptSize([...(given(system) ? [system] : []), ...messages], tools),
  };
}

/** A schema for the answer, under its name of today or under that of its trial. */
const hasFormat = ({ output_config, output_format }: MessagesRequest): boolean =>
  isObject(output_format) || (isObject(output_config) && isObject(output_config.format));
