interface Entry {
  /** Batches of the push that this dispatcher has in work, and one more while it plans the push. */
  inWork: number;
  /** Whether one of them was settled since the push was last closed or looked at. */
  isSettled: boolean;
}

/**
 * Decides after which batch a dispatcher tries to close its push: the last one that it has in work, since the push is open as
 * long as one of its batches is, or it is being planned. So most batches of a push cost no such statement.
 */
export class PushCloser {
  readonly #entries = new Map<number, Entry>();

  begin(pushId: number): void {
    const entry = this.#entries.get(pushId);
    if (entry) entry.inWork += 1;
    else this.#entries.set(pushId, { inWork: 1, isSettled: false });
  }

  /** Notes that a batch in work is settled, after its transaction has committed. */
  markSettled(pushId: number): void {
    const entry = this.#entries.get(pushId);
    if (entry) entry.isSettled = true;
  }

  /**
   * Notes that the batches that were settled so far give no cause to close the push: others are
   * about to be written, which end later, or a statement has just tried to close it.
   */
  forgetSettled(pushId: number): void {
    const entry = this.#entries.get(pushId);
    if (entry) entry.isSettled = false;
  }

  /** Ends the work on a batch or the planning, however it ended. Returns true when the push may be closed. */
  end(pushId: number): boolean {
    const entry = this.#entries.get(pushId);
    if (!entry) return false;
    entry.inWork -= 1;
    if (entry.inWork > 0) return false;
    this.#entries.delete(pushId);
    return entry.isSettled;
  }
}
