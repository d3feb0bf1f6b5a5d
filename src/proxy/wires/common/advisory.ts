import { isObject } from '../../../lib/json.ts';
import type { SeamKind } from '../../../plans/seam/joint.ts';
import type { Mode } from '../../../plans/seam/mode.ts';

/** What the client asked to see besides the standard wire: the `Holdfast-Events` request header. */
export type EventsMode = 'none' | 'chunks' | 'comments';

/** Events for clients that asked to see recoveries (`Holdfast-Events`); never part of the transcript. */
export type Advisory =
  | {
      readonly type: 'ToolCallCancel';
      readonly id: string;
      readonly name: string;
      readonly reason: string;
      readonly attempt: number;
    }
  | {
      readonly type: 'StreamReset';
      readonly reason: string;
      readonly attempt: number;
      /** What of the answer so far starts anew. */
      readonly scope: 'reasoning' | 'text' | 'all';
    }
  | {
      readonly type: 'Recovered';
      readonly plan: 'R1' | 'R3' | 'R4';
      /** How the rest was asked for. */
      readonly mode: 'first' | Mode;
      /** How its two sides were joined; absent where the answer starts anew or is resumed. */
      readonly seam?: SeamKind;
      readonly cause: string;
      readonly attempt: number;
      /** Silence the client felt, in milliseconds. */
      readonly gap_ms: number;
      /** The upstream that continues the answer, if it is not the interrupted one. */
      readonly upstream?: string;
    };

/** The id of the call that an event as it was delivered says was cancelled, in our own object in it. */
export function cancelledCallOf({ holdfast }: Readonly<Record<string, unknown>>): string | undefined {
  const isCancel = isObject(holdfast) && holdfast.type === 'ToolCallCancel';
  return isCancel && typeof holdfast.id === 'string' ? holdfast.id : undefined;
}
