/** Sends one message to many devices (protocol/oppo.md#broadcast): saves it once, then broadcasts it to lists of devices. */
import type { JsonObject } from '../../../shared/domain/json.ts';
import { formPost, type HttpRequest } from '../../../shared/http/client.ts';
import type { ExchangeResult } from '../../kit/multicast.ts';
import type { OppoPayload } from './payload.ts';

interface Broadcast {
  payload: OppoPayload;
  deviceTokens: readonly string[];
  token: string;
  signal: AbortSignal;
}

/** Limit of remembered messages; evicted ones are saved again. */
const maxSaves = 100;

/** Messages that one sender saved, by content. OPPO limits saves per day (42). */
export class SavedMessages {
  readonly #root: string;
  readonly #post: (request: HttpRequest) => Promise<ExchangeResult>;
  readonly #saves = new Map<string, Promise<ExchangeResult>>();

  /** `root`: path of the notification calls; `post` sends one call and parses its response. */
  constructor(root: string, post: (request: HttpRequest) => Promise<ExchangeResult>) {
    this.#root = root;
    this.#post = post;
  }

  /** Broadcasts a message to a list of devices; saves it first if necessary. */
  async broadcast({ deviceTokens, payload, signal, token }: Broadcast): Promise<ExchangeResult> {
    const key = keyOf(payload);
    const saving = this.#save(key, payload, token);
    const saved = await saving;
    if (saved.kind !== 'parsed') {
      this.#forget(key, saving);
      // Saving sends nothing to devices: without a response it can always be repeated.
      if (saved.kind === 'unreadable') return { kind: 'parsed', status: saved.status, rule: unsaved };
      return saved.kind === 'unknown' ? { ...saved, kind: 'not_sent' } : saved;
    }
    if (saved.rule.reaction !== 'sent' || saved.messageId === undefined) {
      this.#forget(key, saving);
      return saved.rule.reaction === 'sent' ? { ...saved, rule: unsaved } : saved;
    }
    const form = {
      auth_token: token,
      message_id: saved.messageId,
      target_type: 2,
      target_value: deviceTokens.join(';'),
      ...flat(payload.envelope),
    };
    const result = await this.#post({ ...formPost(`${this.#root}/broadcast`, form), signal });
    if (result.kind === 'parsed' && result.rule.code === '31') this.#forget(key, saving);
    return result;
  }

  /** Removes a save, unless another caller has replaced it. */
  #forget(key: string, saving: Promise<ExchangeResult>): void {
    if (this.#saves.get(key) === saving) this.#saves.delete(key);
  }

  #save(key: string, { notification }: OppoPayload, token: string): Promise<ExchangeResult> {
    const known = this.#saves.get(key);
    if (known) return known;
    // OPPO keeps one message per id, and another thread may have saved it: leave the id out.
    const { app_message_id: _, ...fields } = notification;
    const form = { auth_token: token, ...flat(fields) };
    const save = this.#post(formPost(`${this.#root}/save_message_content`, form));
    this.#saves.set(key, save);
    const oldest = this.#saves.keys().next().value;
    if (this.#saves.size > maxSaves && oldest !== undefined) this.#saves.delete(oldest);
    return save;
  }
}

/** Returns the key of a message; its time to live, which changes between attempts, is not part of it. */
const keyOf = ({ notification: { off_line_ttl: _, ...rest } }: OppoPayload): string => JSON.stringify(rest);

const unsaved = { code: '0', reason: 'saved_without_id', reaction: 'retry' } as const;

/** Encodes each member as a form field. */
const flat = (members: JsonObject): Record<string, string> =>
  Object.fromEntries(
    Object.entries(members).map(([name, value]) => [
      name,
      typeof value === 'string' ? value : JSON.stringify(value),
    ]),
  );
