import type { z } from 'zod';

/** Schemas by the name under which `/openapi.json` lists them. */
export const components = new Map<string, z.ZodType>();

/** Names a schema: the document holds it once, under `#/components/schemas/<name>`. Describe a schema before you name it. */
export function component<S extends z.ZodType>(name: string, schema: S): S {
  if (components.has(name)) throw new Error(`two schemas are called ${name}`);
  components.set(name, schema);
  return schema;
}
