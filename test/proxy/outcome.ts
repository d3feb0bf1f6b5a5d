import { TransportFailure, type TransportResponse } from '../../src/proxy/transport.ts';

/** What whoever opened a request saw of it. */
export interface Outcome {
  readonly status?: number;
  /** The body as far as it came. */
  readonly text: string;
  /** How it ended: properly, or in this failure. */
  readonly end: 'proper' | Pick<TransportFailure, 'code' | 'goaway' | 'clock'>;
}

export async function outcome(opening: Promise<TransportResponse>): Promise<Outcome> {
  let text = '';
  let status: number | undefined;
  try {
    const response = await opening;
    status = response.status;
    for await (const piece of response.body) text += Buffer.from(piece).toString();
    return { status, text, end: 'proper' };
  } catch (error) {
    if (!(error instanceof TransportFailure)) throw error;
    const { code, goaway, clock } = error;
    return { ...(status !== undefined && { status }), text, end: { code, goaway, clock } };
  }
}
