import { z } from 'zod';
import type { Json } from './json.ts';

/**
 * Schema of any JSON value, for members that are kept as they are. A parsed body leaves nothing to
 * check; `z.json()` would refuse the integers that `parseJson` reads as bigint.
 */
export const jsonValue = z.custom<Json>((value) => value !== undefined);

/** Schema of any JSON object, as `jsonValue`. */
export const jsonObject = z.record(z.string(), jsonValue);
