import { readFile } from 'node:fs/promises';
import { parseYaml } from '@redocly/openapi-core';
import { z } from 'zod';

/**
 * Schema of a service in the compose file. It contains only the members that this project uses;
 * other members are refused.
 */
const service = z.strictObject({
  image: z.string(),
  entrypoint: z.array(z.string()).optional(),
  command: z.array(z.string()).optional(),
  environment: z.record(z.string(), z.string()).optional(),
  ports: z.array(z.string()).optional(),
  volumes: z.array(z.string()).optional(),
  tmpfs: z.array(z.string()).optional(),
  cap_drop: z.array(z.string()).optional(),
  security_opt: z.array(z.string()).optional(),
  read_only: z.boolean().optional(),
  restart: z.string().optional(),
  shm_size: z.string().optional(),
  stop_grace_period: z.string().optional(),
});
export type ComposeService = z.infer<typeof service>;

const compose = z.strictObject({
  'x-carillon': z.unknown(),
  services: z.record(z.string(), service),
  volumes: z.record(z.string(), z.null()),
});

const file = new URL('compose.yaml', import.meta.url);
/** `${NAME}`, `${NAME:-default}` and `${NAME:?text}`. */
const variable = /\$\{(\w+)(?::([-?])([^}]*))?\}/g;

/**
 * Reads the services of the compose file and fills in the variables of `env`. Throws if a required
 * variable is missing.
 */
export async function readCompose(env: Record<string, string>): Promise<z.infer<typeof compose>> {
  const text = (await readFile(file, 'utf8')).replace(/^\s*#.*$/gm, '');
  return compose.parse(
    parseYaml(text.replace(variable, (_, ...parts: string[]) => fill(env, parts))),
  );
}

function fill(env: Record<string, string>, [name = '', kind, rest = '']: string[]): string {
  const value = env[name];
  if (value !== undefined && value !== '') return value;
  if (kind === '?') throw new Error(rest);
  return kind === '-' ? rest : '';
}

/** True if a service runs Carillon's image. */
export const isCarillon = ({ image }: ComposeService): boolean => image.endsWith('/carillon');
