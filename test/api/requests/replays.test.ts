import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { App } from '../../../shared/domain/apps/app.ts';
import { isJsonObject, type Json, type JsonObject } from '../../../shared/domain/json.ts';
import { useTestApi } from '../../support/test-api.ts';

/**
 * Tests requests of the native SDKs and the replies that the SDKs read:
 * `test/fixtures/replays/README.md`.
 */
const folder = new URL('../../fixtures/replays/', import.meta.url);
const texts = z.record(z.string(), z.string());
const json: z.ZodType<Json> = z.json();
const exchange = z.strictObject({
  name: z.string(),
  forget: z.string().optional(),
  codeTo: z.string().optional(),
  method: z.string(),
  path: z.string(),
  headers: texts.default({}),
  query: z.record(z.string(), json).default({}),
  body: json.optional(),
  status: z.number(),
  reply: json,
  keep: texts.default({}),
});
type Exchange = z.infer<typeof exchange>;
const replay = z.strictObject({ headers: texts, exchanges: z.array(exchange) });

const replays = readdirSync(folder)
  .filter((name) => name.endsWith('.json'))
  .map((name): [string, z.infer<typeof replay>] => [
    name,
    replay.parse(JSON.parse(readFileSync(new URL(name, folder), 'utf8'))),
  ]);

const api = useTestApi();
const kinds: Record<string, RegExp> = {
  '<id>': /^[0-9a-f]{24}$/,
  '<time>': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
  '<token>': /^[a-z0-9]{25}$/,
  '<text>': /./,
};

/**
 * Converts a reply to a matcher. Some texts match by their kind, and dictionaries may have
 * additional members.
 */
function expected(value: Json): unknown {
  if (typeof value === 'string') return kinds[value] ? expect.stringMatching(kinds[value]) : value;
  if (Array.isArray(value)) return value.map(expected);
  if (!isJsonObject(value)) return value;
  const { '...': isOpen, ...members } = value;
  const matchers = Object.fromEntries(
    Object.entries(members).map(([name, one]) => [name, expected(one)]),
  );
  return isOpen === true ? expect.objectContaining(matchers) : matchers;
}

/** Returns the value in a reply that later requests use by name. */
function memberAt(body: Json, path: string): string {
  const value = path
    .split('.')
    .reduce<Json | undefined>(
      (inner, name) => (isJsonObject(inner) ? inner[name] : undefined),
      body,
    );
  if (typeof value !== 'string') throw new Error(`there is no text at ${path}`);
  return value;
}

/** Sends the requests of an SDK and stores values of the replies. */
class Player {
  readonly #app: App;
  readonly #headers: Record<string, string>;
  readonly #kept = new Map<string, string>();

  constructor(app: App, headers: Record<string, string>) {
    this.#app = app;
    this.#headers = headers;
    this.#kept.set('appId', app.appId);
  }

  async play(step: Exchange): Promise<void> {
    if (step.forget)
      await api.request('DELETE', `/1.1/installations/${this.#filled(step.forget)}`, {
        app: this.#app,
        master: true,
      });
    if (step.codeTo) this.#kept.set('code', await this.#codeTo(step.codeTo));
    const now = Date.now();
    const sign = createHash('md5').update(`${now}${this.#app.appKey}`).digest('hex');
    this.#kept.set('sign', `${sign},${now}`);
    const { method, path, query, headers, body, reply } = this.#filled(step);
    const present = Object.entries(query).map(([name, one]): [string, string] => [
      name,
      typeof one === 'string' ? one : JSON.stringify(one),
    ]);
    const search = present.length > 0 ? `?${new URLSearchParams(present)}` : '';
    const got = await api.request(method, path + search, {
      headers: { ...this.#filled(this.#headers), ...headers },
      ...(body === undefined ? {} : { body }),
    });
    expect({ status: got.status, body: got.body }).toEqual({
      status: step.status,
      body: expected(reply),
    });
    for (const [name, at] of Object.entries(step.keep))
      this.#kept.set(name, memberAt(got.body, at));
  }

  async #codeTo(number: string): Promise<string> {
    const path = `/console/api/apps/${this.#app.appId}/outbox?to=${encodeURIComponent(number)}`;
    return (await api.request('GET', path, { admin: true })).body.results[0].code;
  }

  /** Replaces `$name` with its value. Unknown names, such as operators, stay. */
  #filled<T>(value: T): T {
    return JSON.parse(JSON.stringify(value), (_name, inner: JsonObject | string) => {
      if (typeof inner === 'string') return this.#text(inner);
      if (!isJsonObject(inner)) return inner;
      return Object.fromEntries(
        Object.entries(inner).map(([name, one]) => [this.#text(name), one]),
      );
    });
  }

  #text(text: string): string {
    return text.replace(/\$([a-zA-Z]+)/g, (all, name: string) => this.#kept.get(name) ?? all);
  }
}

describe.each(replays)('%s', (_file, { headers, exchanges }) => {
  let player: Player;
  beforeAll(async () => {
    player = new Player(await api.createApp({ forbidClientPush: false }), headers);
  });

  for (const step of exchanges) test(step.name, () => player.play(step));
});
