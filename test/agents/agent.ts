import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Directories for one trial, empty when it starts. */
export interface Places {
  readonly home: string;
  readonly work: string;
}

/** A command line, with its environment variables. */
export interface Command {
  readonly words: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

/** A coding agent configured as its users would: its own defaults, plus the provider's address. */
export interface Agent {
  readonly name: string;
  /** The npm or PyPI package, pinned to the version that the published results are for. */
  readonly package: { readonly npm: string } | { readonly pypi: string };
  /**
   * Writes the agent's configuration. `url` ends in `/v1`. Returns the commands to run in order: the last one does the
   * task, those before it sign in.
   */
  prepare(url: string, places: Places, prompt: string): readonly Command[];
  /** Extracts the text addressed to the user, for agents that print more than that. */
  said?(output: string): string;
}

const KEY = 'sk-of-a-test-12345678';
const rootOf = (url: string): string => url.replace(/\/v1$/, '');

const codex: Agent = {
  name: 'Codex',
  package: { npm: '@openai/codex@0.169.0' },
  prepare(url, { home }, prompt) {
    mkdirSync(join(home, '.codex'));
    const settings = [
      'model = "gpt-5"',
      'model_provider = "holdfast"',
      '[model_providers.holdfast]',
      'name = "holdfast"',
      `base_url = "${url}"`,
      'wire_api = "responses"',
      'env_key = "OPENAI_API_KEY"',
    ];
    writeFileSync(join(home, '.codex', 'config.toml'), settings.join('\n'));
    const words = [
      'codex',
      'exec',
      '--skip-git-repo-check',
      '--dangerously-bypass-approvals-and-sandbox',
      prompt,
    ];
    return [{ words, environment: { OPENAI_API_KEY: KEY } }];
  },
};

const claudeCode: Agent = {
  name: 'Claude Code',
  package: { npm: '@anthropic-ai/claude-code@2.1.331' },
  prepare(url, _places, prompt) {
    const environment = {
      ANTHROPIC_BASE_URL: rootOf(url),
      ANTHROPIC_API_KEY: KEY,
      // Without this, Claude Code refuses to skip permission prompts when run as root.
      IS_SANDBOX: '1',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    };
    return [{ words: ['claude', '-p', '--dangerously-skip-permissions', prompt], environment }];
  },
};

const opencode: Agent = {
  name: 'opencode',
  package: { npm: 'opencode-ai@1.18.33' },
  prepare(url, { work }, prompt) {
    const holdfast = {
      npm: '@ai-sdk/openai-compatible',
      options: { baseURL: url, apiKey: KEY },
      models: { m: {} },
    };
    const settings = { provider: { holdfast }, model: 'holdfast/m', small_model: 'holdfast/m' };
    writeFileSync(join(work, 'opencode.json'), JSON.stringify(settings));
    return [{ words: ['opencode', 'run', prompt] }];
  },
};

const cline: Agent = {
  name: 'Cline',
  package: { npm: 'cline@3.0.65' },
  prepare: (url, _places, prompt) => [
    { words: ['cline', 'auth', '-p', 'openai', '-k', KEY, '-m', 'gpt-4o', '-b', url] },
    { words: ['cline', '--json', '--auto-approve', 'true', prompt] },
  ],
  said: (output) =>
    Array.from(
      output.matchAll(/"contentType":"text","text":("(?:[^"\\]|\\.)*")/g),
      ([, text = '""']) => JSON.parse(text) as string,
    ).join(''),
};

const aider: Agent = {
  name: 'aider',
  package: { pypi: 'aider-chat==0.86.2' },
  prepare(url, _places, prompt) {
    const words = [
      'aider',
      '--yes-always',
      '--no-git',
      '--no-check-update',
      '--no-analytics',
      '--no-show-model-warnings',
    ];
    const environment = { OPENAI_API_BASE: url, OPENAI_API_KEY: KEY };
    return [
      {
        words: [...words, '--model', 'openai/m', '--edit-format', 'diff', '--message', prompt, 'poem.txt'],
        environment,
      },
    ];
  },
};

export const AGENTS: readonly Agent[] = [codex, claudeCode, opencode, cline, aider];
