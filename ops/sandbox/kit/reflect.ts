/**
 * The three functions of `Reflect` that tsyringe calls, in place of a further dependency. `@peculiar/x509` uses tsyringe,
 * which does not load without `Reflect.getMetadata`.
 * Import this before `@peculiar/x509`.
 */
const records = new WeakMap<object, Map<string, unknown>>();

function defineMetadata(key: string, value: unknown, target: object): void {
  const record = records.get(target) ?? new Map<string, unknown>();
  records.set(target, record.set(key, value));
}

function getOwnMetadata(key: string, target: object): unknown {
  return records.get(target)?.get(key);
}

/** Searches the prototype chain: classes inherit the metadata of their parents. */
function getMetadata(key: string, target: object): unknown {
  for (let at: object | null = target; at !== null; at = Reflect.getPrototypeOf(at)) {
    if (records.get(at)?.has(key)) return getOwnMetadata(key, at);
  }
  return undefined;
}

if (!('getMetadata' in Reflect)) Object.assign(Reflect, { defineMetadata, getMetadata, getOwnMetadata });
