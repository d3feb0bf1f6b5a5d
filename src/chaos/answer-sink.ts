/** Receives an answer that may have a fault. */
export interface AnswerSink {
  /** Aborts when the rest of the answer is no longer wanted. */
  readonly gone: AbortSignal;
  /** The answer was ended or broken off. Later writes are ignored. */
  readonly isOver: boolean;
  /** Resolves when more can be written, or when nothing more is wanted. */
  write(bytes: string | Uint8Array): Promise<void>;
  /** Ends the answer normally. */
  end(bytes?: string): void;
  /** Resets the connection once everything written was sent. */
  reset(): Promise<void>;
}
