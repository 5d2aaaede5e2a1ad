/**
 * Calls `listener` when the process that started this one has exited: its IPC channel closes then. Calls it at once if that
 * happened earlier, while this process loaded its modules. Never calls it without such a channel. Returns a function that
 * removes the listener.
 */
export function whenSupervisorExits(listener: () => void): () => void {
  // `undefined` without a channel, `false` after its end.
  if (process.connected === false) listener();
  else if (process.connected) process.once('disconnect', listener);
  return () => void process.off('disconnect', listener);
}

/** Sends a message to the supervisor, if there is one. Ignores a closed channel: `whenSupervisorExits` tells of its end. */
export function notifySupervisor(message: object): void {
  if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
}
