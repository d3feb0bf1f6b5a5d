/** One way from the client to the provider. */
export interface Target {
  readonly name: string;
  readonly port: number;
  /** Absent for the direct way. */
  readonly pid?: number;
  /** What requests must say to this proxy beside what requests to any provider say. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Bytes that its store has been sent so far, where that is known. */
  storedBytes?(): Promise<number>;
  stop(): Promise<void>;
}

/** `directory` is the target's own and empty. */
export type StartTarget = (upstream_port: number, directory: string) => Promise<Target>;
