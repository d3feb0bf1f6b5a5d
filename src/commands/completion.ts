import { suggestion } from '../config/problem.ts';
import { type Invocation, UsageError } from './command.ts';
import { bashCompletion } from './completion-bash.ts';
import { fishCompletion } from './completion-fish.ts';
import { zshCompletion } from './completion-zsh.ts';

const SHELLS: Readonly<Record<string, () => string>> = {
  bash: bashCompletion,
  zsh: zshCompletion,
  fish: fishCompletion,
};

export async function run({ operands }: Invocation): Promise<void> {
  const [shell = ''] = operands;
  const script = Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined;
  if (!script)
    throw new UsageError(
      `there are no completions for "${shell}".${suggestion(shell, Object.keys(SHELLS)) || ` Known: ${Object.keys(SHELLS).join(', ')}.`}`,
    );
  process.stdout.write(script());
}
