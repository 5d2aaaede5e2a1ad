import { AsyncLocalStorage } from 'node:async_hooks';

const lanes = new AsyncLocalStorage<string>();

/**
 * Runs `work` in the lane of an app: connections that it takes from a pool with `turns`, at any depth, count for this
 * app. Work outside of all lanes shares one.
 */
export const runInLane = <T>(appId: string, work: () => T): T => lanes.run(appId, work);

export const currentLane = (): string => lanes.getStore() ?? '';
