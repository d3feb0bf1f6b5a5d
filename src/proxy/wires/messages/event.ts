import { isObject } from '../../../lib/json.ts';
import type { AnswerEvent } from '../common/wire.ts';

/** An event of `/v1/messages` as providers send it; every field may be missing and more may be there. */
export interface MessagesPayload {
  readonly type?: unknown;
  readonly index?: unknown;
  readonly message?: unknown;
  readonly content_block?: unknown;
  readonly delta?: unknown;
  readonly usage?: unknown;
  readonly [field: string]: unknown;
}

/**
 * What a content block is to us. `sealed` ones, tools that the provider runs itself among them, say nothing that could
 * be gone on with: they pass as they come, and whole.
 */
export type BlockKind = 'text' | 'thinking' | 'tool' | 'sealed';

/** A content block of one attempt. */
export interface SourceBlock {
  readonly kind: BlockKind;
  /** `type` of the block. */
  readonly type: string;
  /** The run's number of a tool call. */
  readonly call?: number;
}

/** An event of the answer. */
export interface MessagesEvent extends AnswerEvent {
  /** As it came, on one line. */
  readonly payload: string;
  readonly parsed: MessagesPayload;
  readonly type: string;
  /** The block that it is part of. */
  readonly block?: SourceBlock;
  /** What the attempt thought, as far as it is signed. */
  readonly thoughts: readonly Thought[];
}

/** A block at the head of an answer that its provider takes back only as it was. */
export type Thought =
  | { readonly type: 'thinking'; readonly thinking: string; readonly signature: string }
  | { readonly type: 'redacted_thinking'; readonly data: unknown };

export function kindOf(type: string): BlockKind {
  switch (type) {
    case 'text':
    case 'thinking':
      return type;
    case 'tool_use':
      return 'tool';
    default:
      return 'sealed';
  }
}

/** At the head of a payload, as everybody writes them; anywhere else it may be the type of something within. */
const LEADING_TYPE = /^\{\s*"type"\s*:\s*"([a-z_]+)"/;

/** The type of an event, which is its name. Empty if it has none. */
export function typeOf(payload: string): string {
  const leading = LEADING_TYPE.exec(payload)?.[1];
  if (leading !== undefined) return leading;
  const parsed: unknown = JSON.parse(payload);
  return isObject(parsed) && typeof parsed.type === 'string' ? parsed.type : '';
}

export const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';
