import type { Json } from '../../shared/domain/json.ts';

/** Request and reply that a test recorded (`docs/examples.json`). */
export interface Example {
  /** Status of the reply. */
  status: number;
  /** Parameters of the path. */
  path?: Record<string, string>;
  query?: Record<string, string | number>;
  body?: Json;
  reply?: Json;
}

/** Examples by operation; an alias has those of its first path. */
export type Examples = Record<string, Example>;

/**
 * Reads the examples. They are a module of their own: only who reads the description loads them.
 */
export async function loadExamples(): Promise<Examples> {
  const file: { default: unknown } = await import('../../docs/examples.json', {
    with: { type: 'json' },
  });
  // A test compares the file with what the service answers.
  return file.default as Examples;
}

/** Returns `{ example }`, or an empty object for an operation without one. */
export const exampleOf = (example: Json | undefined): { example?: Json } =>
  example === undefined ? {} : { example };
