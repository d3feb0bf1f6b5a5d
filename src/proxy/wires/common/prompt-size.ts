import { isObject } from '../../../lib/json.ts';
import type { PromptSize } from '../../../plans/tokens.ts';

/** OpenAI's count for an image of 1024 × 1024, and for one in low detail. */
const IMAGE_TOKENS = 765;
const LOW_DETAIL_TOKENS = 85;

/** Types of parts on any wire that the model sees rather than reads. */
const MEDIA: ReadonlySet<unknown> = new Set([
  'image',
  'image_url',
  'input_image',
  'computer_screenshot',
  'input_audio',
  'video_url',
  'file',
  'input_file',
  'document',
]);
/** Fields that the model doesn't read. */
const UNREAD: ReadonlySet<string> = new Set([
  'type',
  'role',
  'id',
  'status',
  'cache_control',
  'signature',
  'encrypted_content',
]);
/** Fields of which the model reads the text but not the name. */
const BARE: ReadonlySet<string> = new Set(['content', 'text', 'output', 'summary', 'thinking', 'refusal']);
const DATA_URL = /^data:[^,]{0,200},/;

interface Measure {
  characters: number;
  media_tokens: number;
}

/** What the model reads in a request: each message, and the tools. */
export function promptSize(messages: readonly unknown[], ...tools: readonly unknown[]): PromptSize {
  const media: Measure = { characters: 0, media_tokens: 0 };
  const message_characters = messages.map((message) => {
    const before = media.characters;
    measure(message, media);
    return media.characters - before;
  });
  const tool_characters = tools.reduce<number>(
    (sum, each) => sum + (each === undefined || each === null ? 0 : JSON.stringify(each).length),
    0,
  );
  return { message_characters, tool_characters, media_tokens: media.media_tokens };
}

function measure(value: unknown, sum: Measure): void {
  if (typeof value === 'string') {
    if (DATA_URL.test(value)) sum.media_tokens += IMAGE_TOKENS;
    else sum.characters += value.length;
  } else if (Array.isArray(value)) for (const each of value) measure(each, sum);
  else if (isObject(value)) {
    if (MEDIA.has(value.type) && !isText(value.source)) sum.media_tokens += tokensOfMedia(value);
    else
      for (const [name, each] of Object.entries(value)) {
        if (UNREAD.has(name)) continue;
        const before = sum.characters;
        measure(each, sum);
        if (sum.characters > before && !BARE.has(name)) sum.characters += name.length;
      }
  } else if (value !== undefined && value !== null) sum.characters += String(value).length;
}

/** Whether a document is plain text. */
const isText = (source: unknown): boolean => isObject(source) && source.type === 'text';

function tokensOfMedia({ detail, image_url }: Readonly<Record<string, unknown>>): number {
  const asked = isObject(image_url) ? image_url.detail : detail;
  return asked === 'low' ? LOW_DETAIL_TOKENS : IMAGE_TOKENS;
}
