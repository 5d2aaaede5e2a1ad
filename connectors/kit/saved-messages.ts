import type { ExchangeResult } from './multicast.ts';
import type { ResponseRule } from './response-rules.ts';

/** A message that is saved at the vendor once and then sent to lists of devices. */
export interface SavableMessage {
  /** Content of the message without its time to live, which changes between attempts. */
  key: string;
  timeToLiveS: number;
  /** Saves the message. A success contains its `messageId`. */
  save(): Promise<ExchangeResult>;
  /** Sends the saved message with this id to a list of devices. */
  sendTo(savedId: string): Promise<ExchangeResult>;
}

interface Save {
  timeToLiveS: number;
  result: Promise<ExchangeResult>;
}

/** Maximum number of cached messages. An evicted message is saved again. */
const maxSaves = 100;

/** Messages that one sender has saved, by content. Vendors limit saves per day. */
export class SavedMessages {
  readonly #saves = new Map<string, Save>();
  readonly #unknownCode: string;
  readonly #withoutId: ResponseRule;

  /**
   * @param unknownCode Code of the vendor for a saved message that it no longer has.
   * @param withoutId Reason of a save without an id.
   */
  constructor(unknownCode: string, withoutId: string) {
    this.#unknownCode = unknownCode;
    this.#withoutId = { code: '0', reason: withoutId, reaction: 'retry' };
  }

  /** Sends a message to a list of devices. Saves it first if needed. */
  async send(message: SavableMessage): Promise<ExchangeResult> {
    const save = this.#save(message);
    const saved = await save.result;
    const { messageId } = saved.kind === 'parsed' ? saved : {};
    if (saved.kind !== 'parsed' || saved.rule.reaction !== 'sent' || messageId === undefined) {
      this.#forget(message, save);
      return this.#unsaved(saved);
    }
    const result = await message.sendTo(messageId);
    if (result.kind === 'parsed' && result.rule.code === this.#unknownCode)
      this.#forget(message, save);
    return result;
  }

  /** Saving sends nothing to devices, so it can be repeated if there was no response. */
  #unsaved(saved: ExchangeResult): ExchangeResult {
    if (saved.kind === 'unknown') return { ...saved, kind: 'not_sent' };
    const isSuccess = saved.kind === 'parsed' && saved.rule.reaction === 'sent';
    if (saved.kind !== 'unreadable' && !isSuccess) return saved;
    return { kind: 'parsed', status: saved.status, rule: this.#withoutId };
  }

  /** Removes a saved message, unless another caller has replaced it. */
  #forget({ key }: SavableMessage, save: Save): void {
    if (this.#saves.get(key) === save) this.#saves.delete(key);
  }

  #save({ key, timeToLiveS, save }: SavableMessage): Save {
    const existing = this.#saves.get(key);
    if (existing && isSameLife(existing.timeToLiveS, timeToLiveS)) return existing;
    const started = { timeToLiveS, result: save() };
    this.#saves.delete(key);
    this.#saves.set(key, started);
    const oldest = this.#saves.keys().next().value;
    if (this.#saves.size > maxSaves && oldest !== undefined) this.#saves.delete(oldest);
    return started;
  }
}

/**
 * Returns whether a saved message may be sent with the time to live that it was saved with. The
 * vendor applies this time to each list. A later list of the same push has less time left, and
 * another push with the same content may have more.
 */
const isSameLife = (savedS: number, neededS: number): boolean =>
  Math.abs(savedS - neededS) <= Math.max(10, neededS / 10);
