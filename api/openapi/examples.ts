import type { Json } from '../../shared/domain/json.ts';

/** Request and reply that a test recorded (`docs/examples.json`). */
export interface Example {
  /** Status of the reply. */
  status: number;
  /** Parameters in the path. */
  path?: Record<string, string>;
  query?: Record<string, string | number>;
  body?: Json;
  reply?: Json;
}

/** Examples by operation. An alias has the examples of its first path. */
export type Examples = Record<string, Example>;

/**
 * Reads the examples. They are a separate module, so that they are loaded only when somebody reads
 * the description.
 */
export async function loadExamples(): Promise<Examples> {
  const file: { default: unknown } = await import('../../docs/examples.json', {
    with: { type: 'json' },
  });
  // A test compares the file with the replies of the service.
  return file.default as Examples;
}

/** Returns `{ example }`, or an empty object if the operation has no example. */
export const exampleOf = (example: Json | undefined): { example?: Json } =>
  example === undefined ? {} : { example };
