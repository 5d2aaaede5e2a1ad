import type { Handle } from '../pool.ts';
import { type PreparedStatement, prepare } from '../prepared.ts';
import { isSpread } from './distribution.ts';

/** Row of an app. */
interface OfApp {
  appId: string;
}

const answers = new WeakMap<Handle, Promise<boolean>>();

/** Returns whether the database is spread (operate/distributed.md); asks it once for each pool or connection. */
export function knowsSpread(db: Handle): Promise<boolean> {
  const known = answers.get(db);
  if (known) return known;
  const answer = isSpread(db);
  answers.set(db, answer);
  answer.catch(() => answers.delete(db));
  return answer;
}

/** Returns rows in the parts that one statement can have: all of them, or those of one app where the database is spread. */
export async function partByApp<T extends OfApp>(db: Handle, rows: readonly T[]): Promise<T[][]> {
  if (rows.length === 0) return [];
  return (await knowsSpread(db)) ? [...Map.groupBy(rows, ({ appId }) => appId).values()] : [[...rows]];
}

const skipsLocked = / FOR (NO KEY )?UPDATE( OF \w+)? SKIP LOCKED/;

/**
 * Returns a statement that passes over the rows that others have locked. A spread database locks no rows of several apps in a
 * subquery: there it takes locked rows as well, and waits for them.
 */
export async function sweepText(db: Handle, text: string): Promise<string> {
  return (await knowsSpread(db)) ? text.replace(skipsLocked, '') : text;
}

/**
 * Statement over rows of several apps. A spread database runs it for one app at a time: its conditions name the app then, so
 * that one server does all of it.
 */
export class AppStatement {
  readonly #ofAll: PreparedStatement | string;
  readonly #ofOne: PreparedStatement | string;

  /**
   * `text` gets what names the app in the conditions on a table: nothing, or a comparison with parameter `place`.
   * `isPrepared`: connections parse it once (`prepare`).
   */
  constructor(
    place: number,
    text: (andApp: (table: string) => string) => string,
    { isPrepared = false } = {},
  ) {
    const ofAll = text(() => '');
    const ofOne = text((table) => ` AND ${table}.app_id = $${place}`);
    this.#ofAll = isPrepared ? prepare(ofAll) : ofAll;
    this.#ofOne = isPrepared ? prepare(ofOne) : ofOne;
  }

  /** Runs it for rows. Returns its results with the rows of each. */
  async run<R extends object, T extends OfApp>(
    db: Handle,
    rows: readonly T[],
    values: (part: T[]) => unknown[],
  ): Promise<{ part: T[]; found: R[] }[]> {
    const done: { part: T[]; found: R[] }[] = [];
    const isOfOne = await knowsSpread(db);
    for (const part of await partByApp(db, rows)) {
      const found = isOfOne
        ? await db.query<R>(this.#ofOne, [...values(part), part[0]?.appId])
        : await db.query<R>(this.#ofAll, values(part));
      done.push({ part, found: found.rows });
    }
    return done;
  }
}
