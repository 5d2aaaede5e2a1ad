import type { GatewayCall } from '../../../connectors/contract/connector.ts';
import { addDuration, type DurationCounts, noDurations } from '../../../shared/process/durations.ts';
import type { CallCount } from '../task.ts';

/** Requests to one profile's gateway. */
export interface Calls {
  calls: CallCount[];
  durations: DurationCounts;
}

/** Answers of one profile's gateway since the last drain. */
export class CallLog {
  #counts = new Map<string, CallCount>();
  /** The one that was counted last: nearly all answers are alike. */
  #last: CallCount | undefined;
  #durations = noDurations();

  add({ status, reason, seconds }: GatewayCall): void {
    addDuration(this.#durations, seconds);
    if (this.#last?.status !== status || this.#last.reason !== reason)
      this.#last = this.#find(status, reason);
    this.#last.count += 1;
  }

  #find(status: number, reason: string): CallCount {
    const key = `${status} ${reason}`;
    const count = this.#counts.get(key) ?? { status, reason, count: 0 };
    this.#counts.set(key, count);
    return count;
  }

  drain(): Calls {
    const drained = { calls: [...this.#counts.values()], durations: this.#durations };
    this.#counts = new Map();
    this.#last = undefined;
    this.#durations = noDurations();
    return drained;
  }
}
