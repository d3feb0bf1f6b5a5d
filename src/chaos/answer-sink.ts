/** Where an answer that may have a fault goes. */
export interface AnswerSink {
  /** Aborts when nothing more of the answer is wanted. */
  readonly gone: AbortSignal;
  /** The answer was ended or broken off here; what else is written is ignored. */
  readonly isOver: boolean;
  /** Resolves when more may be written, or nothing more is wanted. */
  write(bytes: string | Uint8Array): Promise<void>;
  /** The answer ends as a whole one does. */
  end(bytes?: string): void;
  /** The connection is reset, after all that was written. */
  reset(): Promise<void>;
}
