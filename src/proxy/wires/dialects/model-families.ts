/** The version in a name: `claude-3-5-sonnet-20241022`, `anthropic/claude-4.5-sonnet`, `claude-opus-4-1@20250805`. */
const CLAUDE_VERSION = /claude-(?:[a-z]+-)*?v?(\d{1,2})(?!\d)(?:[-.](\d{1,2})(?!\d))?/;

/** Claude up to 4.5 continues a trailing assistant message; later ones, and names without a version, refuse it. */
export function claudeContinues(model: string): boolean {
  const [, major, minor] = CLAUDE_VERSION.exec(model.toLowerCase()) ?? [];
  if (major === undefined) return false;
  return Number(major) < 4 || (Number(major) === 4 && minor !== undefined && Number(minor) <= 5);
}

/** Gemini 2, 3 and 3.1 continue a trailing model turn; of later models only 3.5-flash does, without its `-lite`. */
export const geminiContinues = (model: string): boolean =>
  /gemini-(?:2\.|3-|3\.1-|3\.5-flash(?!-lite)|pro-latest)/.test(model.toLowerCase());

const MISTRAL = /(?:mis|minis|magis|mix|pix|devs|codes)tral/;

/** Models that repeat a prefix before they continue it. */
export const isMistral = (model: string): boolean => MISTRAL.test(model.toLowerCase());

/** GPT and Grok restart after a trailing assistant message. Servers of the open-weight GPT continue it. */
const STARTS_ANEW = /(?:^|[/.])(?:gpt-(?!oss)|chatgpt|o\d|grok)/;

/**
 * What a model's name implies when another provider serves it: false if its family refuses or restarts, otherwise
 * unknown.
 */
export function familyMayContinue(model: string): false | undefined {
  const name = model.toLowerCase();
  const isRefused =
    (name.includes('claude') && !claudeContinues(name)) ||
    (name.includes('gemini') && !geminiContinues(name)) ||
    STARTS_ANEW.test(name);
  return isRefused ? false : undefined;
}

/** Families that still call tools in an answer that continues a prefix. */
export const familyCallsTools = (model: string): boolean => /claude|gemini/.test(model.toLowerCase());
