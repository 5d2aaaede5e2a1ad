import { isJsonObject, type JsonObject } from '../../../shared/domain/json.ts';

/** Parses the body of a call as a form. */
export const formIn = ({ body }: { body: Buffer }): URLSearchParams =>
  new URLSearchParams(body.toString('utf8'));

/** Parses the body of a call as a JSON object; undefined if it is not one. */
export function objectIn({ body }: { body: Buffer }): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
