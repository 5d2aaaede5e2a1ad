import { z } from 'zod';
import type { Json } from './json.ts';

/**
 * Schema of any JSON value, for members that are stored unchanged. A parsed body needs no further
 * check, and `z.json()` would refuse bigints, which `parseJson` returns for large integers.
 */
export const jsonValue = z.custom<Json>((value) => value !== undefined);

/** Schema of any JSON object. Its values are not checked. */
export const jsonObject = z.record(z.string(), jsonValue);
