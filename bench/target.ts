/** Name of the target that `--before` adds. */
export const BEFORE = 'before';

/** One route from the client to the provider. */
export interface Target {
  readonly name: string;
  readonly port: number;
  /** Absent for the direct connection. */
  readonly pid?: number;
  /** Headers that this proxy requires beyond those of any provider. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Bytes sent to the proxy's store so far, if known. */
  storedBytes?(): Promise<number>;
  stop(): Promise<void>;
}

/** `directory` belongs to the target alone and is empty. */
export type StartTarget = (upstream_port: number, directory: string) => Promise<Target>;
