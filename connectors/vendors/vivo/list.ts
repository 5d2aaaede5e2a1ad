/** Sends one message to many devices (protocol/vivo.md#lists): saves it once, then pushes it to lists of devices. */
import type { Json } from '../../../shared/domain/json.ts';
import type { ExchangeResult } from '../../kit/multicast.ts';
import { taskExpiredCode } from './errors.ts';

export interface Call {
  body: Readonly<Record<string, Json | readonly string[]>>;
  token: string;
  signal?: AbortSignal;
}

/** The two calls of a list push, with parsed responses. */
export interface ListCalls {
  save(call: Call): Promise<ExchangeResult>;
  push(call: Call): Promise<ExchangeResult>;
}

/** Limit of remembered tasks; a message whose task was evicted is saved again. */
const maxSaves = 100;

/** Messages that one sender saved, by content. vivo limits saves per day (10252). */
export class ListPush {
  readonly #calls: ListCalls;
  readonly #saves = new Map<string, Promise<ExchangeResult>>();

  constructor(calls: ListCalls) {
    this.#calls = calls;
  }

  /** Pushes the message with this key; saves it first if necessary. */
  async exchange({
    key,
    pushed,
    saved,
  }: {
    key: string;
    saved: Call;
    pushed: Call;
  }): Promise<ExchangeResult> {
    const saving = this.#save(key, saved);
    const save = await saving;
    if (save.kind !== 'parsed') {
      this.#forget(key, saving);
      // Saving sends nothing to devices: without a response it can always be repeated.
      if (save.kind === 'unreadable') return { ...unsaved, status: save.status };
      return save.kind === 'unknown' ? { ...save, kind: 'not_sent' } : save;
    }
    const { messageId: taskId, rule, status } = save;
    if (rule.reaction !== 'sent' || taskId === undefined) {
      this.#forget(key, saving);
      return rule.reaction === 'sent' ? { ...unsaved, status } : save;
    }
    const result = await this.#calls.push({ ...pushed, body: { ...pushed.body, taskId } });
    if (result.kind !== 'parsed') return result;
    if (result.rule.code === taskExpiredCode) this.#forget(key, saving);
    return { ...result, messageId: taskId };
  }

  /** Removes a save, unless another caller has replaced it. */
  #forget(key: string, saving: Promise<ExchangeResult>): void {
    if (this.#saves.get(key) === saving) this.#saves.delete(key);
  }

  #save(key: string, call: Call): Promise<ExchangeResult> {
    const known = this.#saves.get(key);
    if (known) return known;
    const save = this.#calls.save(call);
    this.#saves.set(key, save);
    const oldest = this.#saves.keys().next().value;
    if (this.#saves.size > maxSaves && oldest !== undefined) this.#saves.delete(oldest);
    return save;
  }
}

const unsaved = {
  kind: 'parsed',
  rule: { code: '0', reason: 'saved_without_task', reaction: 'retry' },
} as const;
