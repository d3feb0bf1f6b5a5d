import type { CachedProgram } from '../../test/cached-program.ts';

/** A gateway that runs, and how the suite reaches it. */
export interface StartedGateway {
  /** Of the command of the suite. */
  readonly words: readonly string[];
  stop(): Promise<void>;
}

export interface GatewayUnderTest {
  readonly name: string;
  readonly version: string;
  /** What the page says of its configuration. */
  readonly configuration: string;
  /** `directory` is for its files and its log. Rejects if it cannot be installed or does not start. */
  start(provider_port: number, directory: string): Promise<StartedGateway>;
}

/** Where it is installed. */
export function pathOf(installed: CachedProgram): string {
  if ('missing' in installed) throw new Error(installed.missing);
  return installed.path;
}
