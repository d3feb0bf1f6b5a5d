import { TransportFailure, type TransportResponse } from '../../src/proxy/upstream/transport.ts';

/** A response as its client saw it. */
export interface Outcome {
  readonly status?: number;
  /** The body up to where it ended. */
  readonly text: string;
  /** How it ended: properly, or with this failure. */
  readonly end: 'proper' | { readonly code: string; readonly goaway?: number; readonly clock?: string };
}

/** Reads a response to its end. `onText`: called with everything read so far whenever there is more. */
export async function outcome(
  opening: Promise<TransportResponse>,
  onText: (text: string) => void = () => {},
): Promise<Outcome> {
  let text = '';
  let status: number | undefined;
  try {
    const response = await opening;
    status = response.status;
    await response.body.consume((piece) => {
      text += piece.toString();
      onText(text);
      return undefined;
    });
    return { status, text, end: 'proper' };
  } catch (error) {
    if (!(error instanceof TransportFailure)) throw error;
    const { code, goaway, clock } = error;
    const end = { code, ...(goaway !== undefined && { goaway }), ...(clock !== undefined && { clock }) };
    return { ...(status !== undefined && { status }), text, end };
  }
}
