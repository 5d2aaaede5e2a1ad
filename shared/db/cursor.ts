import type Cursor from 'pg-cursor';
import { sleep } from '../clock.ts';

/** Time limit for closing a cursor: a lost connection never confirms it. */
const cursorCloseMs = 5000;

/** Closes a cursor; resolves false if the server did not respond in time and the connection must not be reused. */
export function closeCursor(cursor: Cursor): Promise<boolean> {
  const closed = cursor.close().then(
    () => true,
    () => false,
  );
  return Promise.race([closed, sleep(cursorCloseMs).then(() => false)]);
}
