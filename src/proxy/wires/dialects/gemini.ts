import { type Dialect, PLAIN } from '../common/dialect.ts';
import { geminiContinues } from './model-families.ts';

/** A trailing assistant message becomes a model turn. Later models refuse to have it last. */
export const gemini: Dialect = {
  ...PLAIN,
  name: 'gemini',
  about: {
    speakers: 'Gemini and Vertex AI, OpenAI-compatible endpoints',
    models: ['gemini-2.5-flash', 'gemini-3.5-flash', 'gemini-3.5-flash-lite', 'gemini-3.6-flash'],
  },
  addresses: [
    'generativelanguage.googleapis.com',
    'aiplatform.googleapis.com',
    '*-aiplatform.googleapis.com',
  ],
  prefill: geminiContinues,
  prefillWithTools: true,
  echoes: false,
};
