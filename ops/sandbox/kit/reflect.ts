/**
 * `@peculiar/x509` builds itself with tsyringe, which refuses to load without `Reflect.getMetadata`. The
 * three functions it calls are all there is here; a package for them would be a dependency more.
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

/** Looks along the prototypes, as classes inherit what was noted on their parents. */
function getMetadata(key: string, target: object): unknown {
  for (let at: object | null = target; at !== null; at = Reflect.getPrototypeOf(at)) {
    if (records.get(at)?.has(key)) return getOwnMetadata(key, at);
  }
  return undefined;
}

if (!('getMetadata' in Reflect)) Object.assign(Reflect, { defineMetadata, getMetadata, getOwnMetadata });
