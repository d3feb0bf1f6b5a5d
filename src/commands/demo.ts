import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Invocation, UsageError } from './command.ts';

/** The demo brings a provider that breaks and an SDK, which a proxy in production has no use for. */
export async function run({ operands }: Invocation): Promise<number> {
  const program = join(import.meta.dirname, '../../demo/demo.ts');
  if (!existsSync(program)) {
    throw new UsageError(
      'the demo is not part of the package: run `npm run demo` in a clone of the repository.',
    );
  }
  const [status] = await once(spawn(process.execPath, [program, ...operands], { stdio: 'inherit' }), 'exit');
  return typeof status === 'number' ? status : 1;
}
